// What is seen, as a file: pictures as SVG or PNG, numbers as CSV.

import { element, svg } from "./dom.js";
import { t } from "./texts.js";

const PIXELS = 2; // of a PNG for each of an SVG
const FONT = 'system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

/** Buttons that save; `picture` gives an SVG element, `table` rows, the first with the columns' names. */
export function saving({ name, picture, table }) {
  const kinds = {
    PNG: picture && (async () => save(`${name}.png`, await drawn(picture()))),
    SVG: picture && (() => save(`${name}.svg`, new Blob([written(picture())], { type: "image/svg+xml" }))),
    CSV: table && (async () => save(`${name}.csv`, new Blob([csv(await table())], { type: "text/csv" }))),
  };
  const buttons = Object.entries(kinds).map(
    ([kind, click]) => click && element("button", { type: "button", class: "chip", on: { click } }, kind),
  );
  return element("p", { class: "examples saving" }, element("span", {}, t("save")), buttons);
}

/** Rows as CSV that spreadsheets open as they should, Chinese too. */
export function csv(rows) {
  const cell = (value) => {
    const text = String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** A picture, white behind, for what is drawn on it. */
export function canvasFor(width, height, ...shapes) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": 14, fill: "#222" };
  return svg("svg", size, svg("rect", { width, height, fill: "#fff" }), shapes);
}

/** Text in a picture. */
export function lettering(text, x, y, options = {}) {
  return svg("text", { x, y, ...options }, text);
}

/** How wide a text will be in a picture. */
export function widthOf(text, size = 14) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${size}px ${FONT}`;
  return context.measureText(text).width;
}

function written(picture) {
  return new XMLSerializer().serializeToString(picture);
}

async function drawn(picture) {
  const address = URL.createObjectURL(new Blob([written(picture)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = element("canvas", { width: PIXELS * image.width, height: PIXELS * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function save(name, content) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name.replace(/[\\/:*?"<>|\s]+/g, "-") }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
