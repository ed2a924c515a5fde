// The lines of a concordance, the word in the middle; only those that are seen are in the page.

import { colorOf } from "./colors.js";
import { element } from "./dom.js";
import { freshId } from "./controls.js";
import { t } from "./texts.js";

const HEIGHT = 34; // pixels of a line, as in page.css
const MORE = 5; // lines above and below those that are seen

/** A table of lines; `onMark` gets the number of the line that is chosen by hand or by arrow keys. */
export function kwicTable(lines, { onMark, sources }) {
  const id = freshId("line");
  const rows = element("div", { role: "rowgroup", class: "rows" });
  const root = element(
    "div",
    { class: sources ? "kwic" : "kwic no-source", role: "grid", tabindex: 0, "aria-label": t("lines-label") },
    rows,
  );
  let shown = [];
  let marked = null;

  function render() {
    const first = Math.max(0, Math.floor(root.scrollTop / HEIGHT) - MORE);
    const count = Math.ceil(root.clientHeight / HEIGHT) + 2 * MORE;
    const seen = shown.slice(first, first + count);
    rows.replaceChildren(
      ...seen.map((number, place) => lineRow(lines[number], { number, place: first + place, marked, id })),
    );
  }

  function reveal() {
    const top = shown.indexOf(marked) * HEIGHT;
    if (top < 0) return;
    const [above, below] = [top < root.scrollTop, top + HEIGHT > root.scrollTop + root.clientHeight];
    if (above || below) root.scrollTop = top - (above ? 0 : root.clientHeight - HEIGHT);
  }

  root.addEventListener("scroll", () => requestAnimationFrame(render));
  root.addEventListener("click", (event) => {
    const row = event.target.closest("[data-number]");
    if (row) onMark(Number(row.dataset.number));
  });
  root.addEventListener("keydown", (event) => {
    const page = Math.floor(root.clientHeight / HEIGHT);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
      event.key
    ];
    if (!step || !shown.length) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(shown.length - 1, shown.indexOf(marked) + step));
    onMark(shown[place]);
  });
  new ResizeObserver(render).observe(root);

  return {
    root,
    /** These lines, by their numbers; one of them marked, or none (null). */
    show(numbers, mark) {
      const moved = mark !== marked || numbers !== shown;
      [shown, marked] = [numbers, mark];
      root.setAttribute("aria-rowcount", shown.length);
      if (marked === null) root.removeAttribute("aria-activedescendant");
      else root.setAttribute("aria-activedescendant", `${id}-${marked}`);
      rows.style.height = `${shown.length * HEIGHT}px`;
      if (moved) reveal();
      render();
    },
  };
}

function lineRow(line, { number, place, marked, id }) {
  const cell = (name, ...content) => element("span", { role: "gridcell", class: name }, ...content);
  const options = {
    role: "row",
    id: `${id}-${number}`,
    class: "line",
    "data-number": number,
    "aria-rowindex": place + 1,
    "aria-selected": String(number === marked),
    style: { top: `${place * HEIGHT}px` },
  };
  const sense = line.sense && element("i", { style: { background: colorOf(line.sense - 1) }, "aria-hidden": true });
  return element(
    "div",
    options,
    cell("sense", sense, line.sense && String(line.sense)),
    cell("left", element("span", {}, line.left)),
    cell("keyword", line.word),
    cell("right", line.right),
    cell("source", line.document),
  );
}
