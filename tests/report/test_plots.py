from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tutelage.envs.maze import MazeDomain
from tutelage.report.facts.comparison import Comparison, Group, gather
from tutelage.report.plots.figure import Words, finish
from tutelage.report.plots.levels import sheet
from tutelage.report.plots.lines import MAX_POINTS, Line, Scale, apart, curve, line_sketch
from tutelage.report.plots.methods import complexity, learning
from tutelage.runs.browse import Found


def rows(seeds: int = 2, points: int = 5, **more) -> list[dict]:
    base = [
        {"updates": 10 * (n + 1), "seed": s, "replay/solved": (n + s) / 10} for n in range(points) for s in range(seeds)
    ]
    return [row | more for row in base]


def texts(svg: str) -> list[str]:
    return ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_curve_is_the_mean_over_seeds_and_its_standard_error() -> None:
    found = curve(rows(), "replay/solved")
    assert found is not None
    np.testing.assert_allclose(found.updates, [10, 20, 30, 40, 50])
    np.testing.assert_allclose(found.mean, [0.05, 0.15, 0.25, 0.35, 0.45])
    np.testing.assert_allclose(found.error, 0.05)


def test_one_seed_tells_no_error() -> None:
    found = curve(rows(seeds=1), "replay/solved")
    assert found is not None
    assert np.isnan(found.error).all()


def test_what_is_no_number_is_no_point() -> None:
    assert curve(rows(**{"replay/solved": None}), "replay/solved") is None


def test_long_runs_are_thinned_by_averaging_neighbours() -> None:
    found = curve(rows(points=3 * MAX_POINTS), "replay/solved")
    assert found is not None
    assert len(found.mean) == MAX_POINTS
    np.testing.assert_allclose(found.updates[:2], [20, 50])
    np.testing.assert_allclose(found.mean[:2], [0.15, 0.45])


@pytest.fixture
def alone(three_runs):
    """A comparison of one method whose metrics are those given."""
    (group,) = gather([three_runs["accel"]]).comparisons[0].groups

    def with_rows(rows: list[dict]) -> Comparison:
        member = replace(group.members[0], rows=rows)
        return Comparison("maze", None, (Group(group.label, group.method, group.preset, (member,)),))

    return with_rows


def drawn(sketch) -> list[str]:
    return texts(finish(sketch).inline[0])


def test_learning_curves_of_one_method_name_every_kind_of_level_that_is_there(alone) -> None:
    (sketch,) = learning(alone(rows(**{"explore/solved": 0.25, "eval/solved": 1.0})))
    written = drawn(sketch)
    assert {"replayed 45%", "new 25%", "validation 100%", "episodes solved"} <= set(written)
    assert not any("edited" in t for t in written)
    assert any("2 seeds" in t and "standard error" in t for t in written)


def test_no_metrics_no_figure(alone) -> None:
    for nothing in ([], [{"updates": 1, "seed": 0}]):
        assert learning(alone(nothing)) == []
        assert complexity(alone(nothing)) == []


def test_complexity_is_whatever_the_domain_describes(alone) -> None:
    more = {"buffer/tree_height": 3.0, "buffer/tree_height_replay": 4.0, "buffer/fill": 1.0, "buffer/score": 0.1}
    (only,) = complexity(alone(rows(**more)))
    assert {"Tree height", "buffer", "replayed", "student updates"} <= set(drawn(only))


def test_without_replay_there_is_no_replayed_line(alone) -> None:
    without = [{"updates": n, "seed": 0, "buffer/pits": 3.0, "buffer/pits_replay": 4.0} for n in (1, 2)]
    (only,) = complexity(alone(without))
    assert "replayed" not in drawn(only)


def test_names_of_metrics_cannot_break_a_figure(alone) -> None:
    """Two names, one of them markup, that would be one in a file's name."""
    more = {"buffer/$b$<i>": 1.0, "buffer/$b$<i>_replay": 1.0}
    (only,) = complexity(alone(rows(**more)))
    assert "$b$<i>" in drawn(only)


def test_a_run_that_stands_at_its_start_can_be_drawn(alone) -> None:
    (sketch,) = learning(alone([{"updates": 0, "seed": 0, "replay/solved": 0.0}]))
    assert "replayed 0%" in drawn(sketch)


def test_labels_keep_apart_and_in_order() -> None:
    placed = apart([98.0, 100.0, 99.0, 0.0], [10.0] * 4, top=105.0)
    assert placed == [80, 100, 90, 0]
    assert apart([3.0, 40.0], [10.0] * 2, top=105.0) == [3, 40]
    assert apart([50.0, 50.0], [10.0, 30.0], top=70.0) == [35, 55]


def test_many_lines_are_told_apart_and_all_labels_stay_within_the_figure() -> None:
    x = np.arange(3.0)
    lines = [Line(f"the method called {n}", "#000000", x, 0 * x, 0 * x, 0 * x) for n in range(13)]
    sketch = line_sketch("many", Words("Title", x="updates"), lines, Scale(str, share=True), (240,))
    figure = sketch.draw(240)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    inside = figure.bbox
    boxes = [Text.get_window_extent(text, canvas.get_renderer()) for text in figure.axes[0].texts]  # without leaders
    assert len(boxes) == 13
    assert all(inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)
    boxes.sort(key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))


@pytest.mark.parametrize("shape", [(20, 100, 3), (60, 60, 3)])
@pytest.mark.parametrize("generation", [4, 10**30])
def test_what_is_said_of_a_picture_stands_below_it(shape, generation, monkeypatch) -> None:
    """However wide the pictures are and however much is said, and above the pictures of the next row."""
    design = MazeDomain().design()
    monkeypatch.setattr(type(design), "render", lambda self, level: np.zeros(shape))
    monkeypatch.setattr(type(design), "to_json", lambda self, level: {})
    found = [Found(None, 1, -1, generation, 0, 0.12, 0, {})] * 7
    figure = sheet("sheet", Words("Levels", "five in a row"), design, found, 5).draw(900)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    said = [axes.texts[0].get_window_extent(canvas.get_renderer()) for axes in figure.axes]
    shown = [axes.images[0].get_window_extent(canvas.get_renderer()) for axes in figure.axes]
    for text, picture in zip(said, shown, strict=True):
        assert text.y1 <= picture.y0
    assert max(picture.y1 for picture in shown[5:]) <= min(text.y0 for text in said[:5])
    assert min(text.y0 for text in said) >= 0
