// What readers choose with: examples, choices, a slider through layers; and bars to read.

import { element } from "./dom.js";
import { layerLabel, layersOf } from "./models.js";
import { t } from "./texts.js";

let made = 0;

/** A name that no other element has. */
export function freshId(name) {
  return `${name}-${++made}`;
}

/** A label above its control. */
export function labelled(text, control, options = {}) {
  control.id ||= freshId("control");
  return element("div", { class: "field", ...options }, element("label", { for: control.id }, text), control);
}

/** One of a few, side by side; `choices` are [value, text]. */
export function choice({ label, choices, value, onChange }) {
  const name = freshId("choice");
  const radios = choices.map(([one, text]) => {
    const radio = element("input", { type: "radio", name, value: one, on: { change: () => onChange(one) } });
    radio.checked = one === value;
    return element("label", {}, radio, element("span", {}, text));
  });
  return element("fieldset", { class: "choice" }, element("legend", {}, label), element("div", {}, radios));
}

/** One of many, from a list; `choices` are [value, text]. */
export function select({ label, choices, value, onChange }) {
  const options = choices.map(([one, text]) => element("option", { value: one, selected: one === value }, text));
  const list = element("select", { on: { change: () => onChange(list.value) } }, options);
  return labelled(label, list);
}

/** Which model reads: by the text, unless one is chosen. Nothing where there is one alone. */
export function modelChoice({ info, model, chosen, onChange }) {
  if (info.models.length < 2) return null;
  const names = info.models.map(({ name }) => [name, name]);
  const choices = [["", t("automatic", { name: model.name })], ...names];
  return select({ label: t("the-model"), choices, value: chosen ?? "", onChange: (name) => onChange(name || null) });
}

/** A slider through the layers of a model, and their average. */
export function layerSlider({ model, layer, onChange }) {
  const layers = layersOf(model);
  const slider = element("input", { type: "range", min: 0, max: layers.length - 1, step: 1 });
  const told = element("output", {});
  const tell = () => {
    const label = layerLabel(layers[slider.value]);
    slider.setAttribute("aria-valuetext", label);
    told.textContent = label;
  };
  slider.value = Math.max(0, layers.indexOf(layer));
  slider.addEventListener("input", () => {
    tell();
    onChange(layers[slider.value]);
  });
  tell();
  const ticks = layers.map((one) => element("span", {}, one === "average" ? t("average") : one));
  const track = element(
    "div",
    { class: "track" },
    slider,
    element("div", { class: "ticks", "aria-hidden": true }, ticks),
  );
  const field = labelled(t("layer"), slider, { class: "field layers", title: t("layers-hint") });
  field.firstChild.append(" ", told);
  field.append(track);
  return field;
}

/** Things to click instead of typing; `pairs` are [text, action]. */
export function examples(pairs) {
  const chips = pairs.map(([text, action]) =>
    element("button", { type: "button", class: "chip", on: { click: action } }, text),
  );
  return element("p", { class: "examples" }, element("span", {}, t("examples")), chips);
}

/** Words with bars; `rows` are {word, value, share, text}. With `onPick`, words can be chosen. */
export function bars(rows, { onPick, pickLabel } = {}) {
  const items = rows.map(({ word, share, text }) => {
    const pick = {
      type: "button",
      class: "plain",
      title: onPick && pickLabel(word),
      on: { click: () => onPick(word) },
    };
    const shown = onPick ? element("button", pick, word) : element("span", {}, word);
    const bar = element("i", { "aria-hidden": true, style: { "--share": Math.max(0, share) } });
    return element("li", {}, shown, element("span", { class: "bar" }, bar), element("small", {}, text));
  });
  return element("ol", { class: "bars" }, items);
}
