// Elements, made from values: all text is text, whatever stands in it.

/** An element with attributes, listeners (`on`), CSS variables and properties (`style`) and children. */
export function element(tag, options = {}, ...children) {
  return filled(document.createElement(tag), options, children);
}

/** The same in SVG. */
export function svg(tag, options = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), options, children);
}

function filled(node, { on = {}, style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener);
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A sentence that says what went wrong. */
export function problem(error) {
  return element("p", { class: "problem", role: "alert" }, error.message);
}

/** Puts answers into a region: of several that are waited for, only that to the last question. */
export function answersInto(region) {
  let turn = 0;
  return async (answer, show) => {
    const mine = ++turn;
    region.setAttribute("aria-busy", "true");
    const nodes = await Promise.resolve(answer).then(
      (found) => () => show(found),
      (error) => () => problem(error),
    );
    if (mine !== turn) return;
    region.removeAttribute("aria-busy");
    replaceContent(region, nodes());
  };
}

/** Other content in a region; what had the focus, by its number among those of its kind, has it still. */
export function replaceContent(region, ...nodes) {
  const focused = document.activeElement;
  const alike = () => [...region.querySelectorAll(focused.tagName)].filter((one) => one.type === focused.type);
  const place = region.contains(focused) ? alike().indexOf(focused) : -1;
  region.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  if (place >= 0) alike()[place]?.focus({ preventScroll: true });
}

/** A function that is called once its calls have paused. */
export function afterPause(call, milliseconds = 400) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}
