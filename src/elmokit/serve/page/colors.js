// Colours of pictures and of points, and what colours a number is shaded with.

/** Okabe and Ito's colours, which the colour-blind can tell apart too, as far as they are seen on white and on black. */
export const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#8a8a8a"];

/** The colour of a sense, a label or a cluster, counted from 0; after the last begins the first. */
export function colorOf(number) {
  return COLORS[number % COLORS.length];
}

/** A mix of white and a colour in saved pictures, which are always light; `share` from 0 to 1. */
export function shade(color, share) {
  const part = Math.min(1, Math.max(0, share));
  const channels = [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
  return `rgb(${channels.map((one) => Math.round(255 + (one - 255) * part)).join(", ")})`;
}
