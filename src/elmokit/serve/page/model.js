// The model: what it is made of, layer by layer, and its card.

import { choice } from "./controls.js";
import { element, replaceContent } from "./dom.js";
import { markdown } from "./markdown.js";
import { hasText, number, t } from "./texts.js";

const LONG_FACT = 30; // characters; longer ones have a row of their own

export const modelView = {
  name: "model",
  available: () => true,
  create: createModel,
};

function createModel(app) {
  const root = element("article", {});
  let shown = "";

  function update({ name }) {
    const model = app.info.models.find((one) => one.name === name) ?? app.info.models[0];
    if (model.name === shown) return;
    shown = model.name;
    const choices = app.info.models.map((one) => [one.name, one.name]);
    const choose = (one) => app.set({ name: one });
    const which = choices.length > 1 && choice({ label: t("the-model"), choices, value: model.name, onChange: choose });
    const parts = [
      which,
      !which && element("h2", {}, model.name),
      sizes(model),
      layers(model),
      card(model),
      version(app),
    ];
    replaceContent(root, parts);
  }

  return { root, update };
}

function sizes(model) {
  const facts = [
    ["layers", number(model.layers)],
    ["width", model.width && number(model.width)],
    ["parameters", model.parameters && number(model.parameters)],
    ["vocabulary", model.vocabulary && number(model.vocabulary)],
    ["tokenizer", model.tokenizer],
    ["precision", model.precision],
    ["predicts", model.predicts === false ? t("no") : t("yes")],
    ...Object.entries(model.about ?? {}).map(([name, value]) => [
      name,
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  ];
  const items = facts
    .filter(([, value]) => value)
    .map(([name, value]) => {
      const known = `fact-${name.replaceAll(" ", "-")}`;
      const title = hasText(known) ? t(known) : name;
      const long = value.length > LONG_FACT;
      return element("div", { class: long ? "long" : null }, element("dt", {}, title), element("dd", {}, value));
    });
  return element("dl", { class: "facts" }, items);
}

/** The layers as they stand upon each other, the top one first. */
function layers({ config }) {
  if (!config) return null;
  const cell = (config.cell ?? "lstm").toUpperCase();
  const size = `${cell} ${number(config.hidden)}` + (config.projection ? ` → ${number(config.projection)}` : "");
  const rows = [];
  for (let one = config.layers; one > 0; one -= 1) rows.push(storey(one, `→ ${size}`, `← ${size}`));
  const { characters, words, softmax } = config;
  const filters = characters?.filters?.reduce((sum, [, count]) => sum + count, 0);
  const letters = characters && t("from-characters", { filters: number(filters), highways: characters.highways });
  rows.push(storey(0, ...[letters, words && t("from-words")].filter(Boolean)));
  const top =
    softmax?.size && element("p", { class: "hint" }, t("softmax", { kind: softmax.kind, size: number(softmax.size) }));
  return element("section", {}, element("h2", {}, t("layers-title")), top, element("div", { class: "storeys" }, rows));
}

function storey(layer, ...boxes) {
  const name = element("span", {}, t("layer-number", { number: layer }));
  return element(
    "div",
    {},
    name,
    boxes.map((box) => element("b", {}, box)),
  );
}

function card({ card: text }) {
  if (!text) return null;
  const [, ...blocks] = markdown(text.trimStart().startsWith("# ") ? text.trimStart() : `# \n${text}`);
  return element(
    "section",
    { class: "card", lang: "en" },
    element("h2", { lang: document.documentElement.lang }, t("card")),
    blocks,
  );
}

function version({ info }) {
  if (!info.version) return null;
  return element("p", { class: "hint" }, `elmokit ${info.version} · `, element("a", { href: "docs" }, t("api")));
}
