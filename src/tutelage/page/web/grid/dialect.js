// What mazes and lava grids do not share.

export const MAZE = {
  kind: "maze",
  block: "wall",
  blocks: "walls",
  mark: "#",
  facing: true, // a level says which way the student looks at first
  moves: ["turn left", "turn right", "forward"], // the actions that matter; four more pass the time
  hidden: true, // the student sees but a part
  sizes: [3, 99],
  heat: null, // where a student goes has its own colour
  trail: "you",
};

export const LAVA = {
  kind: "lava",
  block: "lava",
  blocks: "lava",
  mark: "L",
  facing: false,
  moves: ["north", "east", "south", "west", "north-east", "south-east", "south-west", "north-west"],
  hidden: false,
  sizes: [7, 7],
  heat: "lava-heat", // a student's own may look like lava
  trail: "lava-trail",
};

export const DIALECTS = { maze: MAZE, lava: LAVA };
