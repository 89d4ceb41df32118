// Numbers as they are read.

/** So many decimals, with a true minus; a dash for what is no number. */
export function decimal(x, digits = 2) {
  return Number.isFinite(x) ? (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−") : "–";
}

/** A share as whole per cent. */
export function percent(x) {
  return Number.isFinite(x) ? `${Math.round(100 * x)} %` : "–";
}

/** Thousands apart. */
export function count(n) {
  return n.toLocaleString("en-GB");
}

/** "1 wall", "2 walls". */
export function plural(n, word, words = `${word}s`) {
  return `${count(n)} ${n === 1 ? word : words}`;
}

/** A number by its first two digits. */
export function rounded(x) {
  return Number(x.toPrecision(2));
}
