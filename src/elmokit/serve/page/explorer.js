// The page's frame: its head, the views that the backend can answer, and the one that is shown.

import { followCorpora } from "./corpora.js";
import { element, problem } from "./dom.js";
import { keepAnswers } from "./kept.js";
import { modelView } from "./model.js";
import { pairView } from "./pair.js";
import { sentenceView } from "./sentence.js";
import { followState, hashOf, readState, setState } from "./state.js";
import { taskView } from "./task.js";
import { language, setLanguage, t } from "./texts.js";
import { wordView } from "./word.js";

// Each: `name`, whether it is `available` for a backend and what it serves, and `create`, which gives its element
// (`root`) and what to do when the state changes (`update`).
const VIEWS = [sentenceView, pairView, wordView, taskView, modelView];

/** Show the page in `body`; what it knows comes from the backend. */
export async function explore(backend, body) {
  body.replaceChildren(element("p", { class: "loading", role: "status" }, t("loading")));
  let info;
  try {
    info = await backend.info();
  } catch (error) {
    const again = () => explore(backend, body);
    body.replaceChildren(element("main", {}, problem(error), error.status === 401 && keyForm(backend, again)));
    return;
  }
  const app = {
    backend: keepAnswers(backend),
    info,
    corpora: info.corpora ?? [],
    set: setState,
    go: (state) => (location.hash = hashOf(state)),
  };
  const page = { app, body, states: {}, news: element("div", { class: "news", role: "status" }) };
  build(page);
  followState((state) => show(page, state));
  followCorpora(app, page.news, () => show(page, readState()));
}

function keyForm(backend, again) {
  const key = element("input", { type: "password", id: "key", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    backend.useKey(key.value);
    again();
  };
  const label = element("label", { for: "key" }, t("key"));
  return element("form", { class: "key", on: { submit } }, element("p", {}, t("key-why")), label, key, button(t("go")));
}

function button(text) {
  return element("button", {}, text);
}

/** Everything but the state; done again when the language changes. */
function build(page) {
  const { app } = page;
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  const views = VIEWS.filter((view) => view.available(app));
  page.links = new Map(views.map((view) => [view.name, element("a", {}, t(view.name))]));
  page.views = new Map(views.map((view) => [view.name, view]));
  page.created = new Map();
  page.main = element("main", { id: "main", tabindex: -1 });
  const nav = element("nav", { "aria-label": t("views") }, [...page.links.values()]);
  const name = element("h1", {}, element("b", {}, "elmokit"), " ", element("span", {}, t("title")));
  page.body.replaceChildren(element("header", {}, name, languages(page), nav), page.news, page.main);
}

function languages(page) {
  const switches = [
    ["en", "English"],
    ["zh", "中文"],
  ].map(([code, text]) => {
    const click = () => {
      setLanguage(code);
      build(page);
      show(page, readState());
      page.body.querySelector(`[lang="${code}"]`).focus();
    };
    const pressed = { "aria-pressed": String(language() === code) };
    return element("button", { type: "button", class: "plain", lang: code, ...pressed, on: { click } }, text);
  });
  return element("div", { class: "languages", role: "group", "aria-label": t("language") }, switches);
}

function show(page, state) {
  const name = page.views.has(state.view) ? state.view : page.views.keys().next().value;
  page.states[name] = { ...state, view: name };
  for (const [other, link] of page.links) {
    link.href = hashOf(page.states[other] ?? { view: other });
    if (other === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!page.created.has(name)) page.created.set(name, page.views.get(name).create(page.app));
  const view = page.created.get(name);
  if (page.main.firstChild !== view.root) page.main.replaceChildren(view.root);
  document.title = `elmokit · ${t(name)}`;
  view.update(state);
}
