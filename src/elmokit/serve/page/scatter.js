// Occurrences as points, on a canvas so that ten thousand are no trouble. Drawing a frame chooses those within.

import { colorOf } from "./colors.js";
import { canvasFor, lettering } from "./export.js";
import { element, svg } from "./dom.js";
import { nounOf } from "./lines.js";
import { t } from "./texts.js";

const RADIUS = 4;
const MARGIN = 16;
const NEAR = 10; // pixels from a point that still mean it
const CLICK = 4; // pixels that a hand moves without meaning to

/** Points of lines; `onFrame` gets [x1, y1, x2, y2] or null, `onPick` the number of a line. */
export function scatter(lines, { onFrame, onPick }) {
  const canvas = element("canvas", { role: "img", "aria-label": t("points-label") });
  const root = element("div", { class: "scatter" }, canvas);
  const plane = planeOf(lines);
  let shown = { mask: new Uint8Array(lines.length).fill(1), marked: null, box: null };

  const draw = () => paint(canvas, plane, lines, shown);
  new ResizeObserver(() => {
    plane.fit(root.clientWidth, root.clientHeight);
    draw();
  }).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  listen(canvas, plane, { lines, onPick, onFrame });

  const show = (changes) => {
    shown = { ...shown, ...changes };
    draw();
  };
  return { root, show };
}

/** From points to pixels and back, both axes alike. */
function planeOf(lines) {
  const bounds = { x: extent(lines.map(({ x }) => x)), y: extent(lines.map(({ y }) => y)) };
  const plane = { width: 0, height: 0, scale: 1 };
  const middle = ([low, high]) => (low + high) / 2;
  plane.fit = (width, height) => {
    const room = (pixels, [low, high]) => (pixels - 2 * MARGIN) / (high - low || 1);
    Object.assign(plane, { width, height, scale: Math.min(room(width, bounds.x), room(height, bounds.y)) });
  };
  plane.left = (x) => plane.width / 2 + (x - middle(bounds.x)) * plane.scale;
  plane.top = (y) => plane.height / 2 - (y - middle(bounds.y)) * plane.scale;
  plane.x = (left) => middle(bounds.x) + (left - plane.width / 2) / plane.scale;
  plane.y = (top) => middle(bounds.y) - (top - plane.height / 2) / plane.scale;
  return plane;
}

function extent(values) {
  return [
    values.reduce((one, other) => Math.min(one, other), Infinity),
    values.reduce((one, other) => Math.max(one, other), -Infinity),
  ];
}

function paint(canvas, plane, lines, { mask, marked, box }) {
  const { width, height } = plane;
  if (!width || !height) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  context.scale(ratio, ratio);
  context.globalAlpha = 0.25;
  dots(
    context,
    plane,
    lines.filter((_, number) => !mask[number]),
    style.getPropertyValue("--quiet"),
    RADIUS - 1,
  );
  context.globalAlpha = 0.8;
  const seen = lines.filter((_, number) => mask[number]);
  for (const [sense, some] of Map.groupBy(seen, (line) => line.sense))
    dots(context, plane, some, colorOf(sense - 1), RADIUS);
  context.globalAlpha = 1;
  context.strokeStyle = style.color;
  if (marked !== null && lines[marked]) ring(context, plane.left(lines[marked].x), plane.top(lines[marked].y));
  if (box) frame(context, plane, box);
}

function dots(context, plane, lines, color, radius) {
  context.fillStyle = color;
  context.beginPath();
  for (const { x, y } of lines) {
    const left = plane.left(x);
    const top = plane.top(y);
    context.moveTo(left + radius, top);
    context.arc(left, top, radius, 0, 2 * Math.PI);
  }
  context.fill();
}

function ring(context, left, top) {
  context.lineWidth = 2.5;
  context.beginPath();
  context.arc(left, top, RADIUS + 4, 0, 2 * Math.PI);
  context.stroke();
}

function frame(context, plane, [x1, y1, x2, y2]) {
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  const [left, top] = [plane.left(x1), plane.top(y2)];
  context.strokeRect(left, top, plane.left(x2) - left, plane.top(y1) - top);
}

function listen(canvas, plane, { lines, onPick, onFrame }) {
  let start = null;
  const boxTo = (event) => {
    const [x, y] = [plane.x(event.offsetX), plane.y(event.offsetY)];
    return [Math.min(x, start.x), Math.min(y, start.y), Math.max(x, start.x), Math.max(y, start.y)];
  };
  const moved = (event) => Math.hypot(event.offsetX - start.left, event.offsetY - start.top) > CLICK;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const [left, top] = [event.offsetX, event.offsetY];
    start = { left, top, x: plane.x(left), y: plane.y(top) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (start && moved(event)) onFrame(boxTo(event), { last: false });
  });
  canvas.addEventListener("pointerup", (event) => {
    const near = moved(event) ? null : nearestTo(lines, plane, event);
    if (moved(event)) onFrame(boxTo(event), { last: true });
    else if (near === null) onFrame(null, { last: true });
    else onPick(near);
    start = null;
  });
  canvas.addEventListener("pointercancel", () => (start = null));
}

function nearestTo(lines, plane, { offsetX, offsetY }) {
  let best = null;
  let least = NEAR;
  lines.forEach(({ x, y }, number) => {
    const distance = Math.hypot(plane.left(x) - offsetX, plane.top(y) - offsetY);
    if (distance < least) [best, least] = [number, distance];
  });
  return best;
}

/** The points as a picture to save, with the word above and the keywords of its senses below. */
export function scatterPicture(found, mask) {
  const { lines, senses, word } = found;
  const plane = planeOf(lines);
  plane.fit(640, 480);
  const seen = lines.filter((_, number) => mask[number]);
  const shapes = seen.map(({ x, y, sense, left, word, right }) => {
    const place = { cx: plane.left(x).toFixed(1), cy: plane.top(y).toFixed(1), r: RADIUS, fill: colorOf(sense - 1) };
    return svg("circle", { ...place, "fill-opacity": 0.8 }, svg("title", {}, `${left}${word}${right}`));
  });
  const legend = senses.flatMap(({ keywords }, index) => {
    const y = plane.height + 12 + 22 * index;
    const text = `${t(`${nounOf(found)}-number`, { number: index + 1 })}: ${keywords.map((one) => one.word).join(", ")}`;
    return [
      svg("circle", { cx: MARGIN, cy: y - 5, r: RADIUS + 1, fill: colorOf(index) }),
      lettering(text, MARGIN + 14, y),
    ];
  });
  const title = lettering(word, MARGIN, 24, { "font-weight": 600, "font-size": 18 });
  return canvasFor(plane.width, plane.height + 22 * senses.length + 8, title, shapes, legend);
}
