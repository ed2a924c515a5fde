"""The page of `elmokit serve` in a real browser, against a real server: every view, in English and in Chinese."""

import csv
import io
import json
import re
import shutil
import threading
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from conftest import new_cache
from serving import SAMPLE, listening

from elmokit.serve import ServeSettings, open_service
from elmokit.serve.app import PAGE
from elmokit.tasks import train

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
browsing = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
LANGUAGES = ("en", "zh-CN")
VIEWS = {
    "en": ["Sentence", "Two sentences", "Corpus", "Tasks", "Model"],
    "zh-CN": ["句子", "两个句子", "语料库", "任务", "模型"],
}
TEXTS = {"en": "He sat on the bank of the river.", "zh-CN": "院子里的花开了。"}
WORDS = {"en": "bank", "zh-CN": "花"}
EVIL = "<script>document.title = 'hacked'</script> <img src=x onerror=\"document.title='hacked'\">"
TAGGED = "Anna\tB-PER\nsings\tO\n\nin\tO\nParis\tB-LOC\n"
LINES = 10_000
QUICK = 100  # milliseconds in which so many lines are filtered


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server with the bundled models and samples, a corpus of two documents, a task and static vectors."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "tagged.conll").write_text(TAGGED)
    files = {"train": folder / "tagged.conll", "dev": folder / "tagged.conll", "folder": folder / "entities"}
    train("tagging", **files, embedders=["en"], epochs=1, settings={"hidden": 8})
    (folder / "vectors.txt").write_text("bank 1 0\nriver 0.9 0.1\nmoney 0 1\n")
    documents = folder / "documents"
    documents.mkdir()
    (documents / "one.txt").write_text(f"The bank of the river is {EVIL} steep.\nThe bank lends money.\n")
    (documents / "two.txt").write_text("She went to the bank.\n")
    corpora = [SAMPLE, SAMPLE.with_name("zh.txt"), documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMOKIT_CACHE", new_cache(tmp_path_factory))
        tasks, static = [folder / "entities"], folder / "vectors.txt"
        with listening(open_service(["en", "zh"], corpora=corpora, tasks=tasks, static=static)) as address:
            yield address


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as browsers:
        yield browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def open_page(browser, address):
    """Opens the page at a state; in the end, nothing has gone wrong in any."""
    contexts, wrong = [], []

    def open_at(state=None, *, language="en", at=address, **options):
        context = browser.new_context(locale=language, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(error.message))
        page.goto(f"{at}#{state if isinstance(state, str) else urlencode(state or {})}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert [one for one in wrong if "Failed to load resource" not in one] == []  # refusals are answers, too


def settled(page):
    """The page when all questions are answered and all indexes are built."""
    page.wait_for_selector("main article:not(:has([aria-busy]))")
    page.wait_for_selector(".news:not(:has(*))", state="attached")
    return page


def ask(page, address, route, **body):
    """What the API answers."""
    answer = page.request.post(f"{address}{route}", data=body)
    assert answer.ok, answer.text()
    return answer.json()


def state_of(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def saved_table(page, within="main"):
    """The rows of the CSV file that a view saves."""
    with page.expect_download() as download:
        page.locator(f"{within} >> text='CSV'").first.click()
    content = Path(download.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(content)))


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_view(open_page, language):
    page = open_page(language=language)
    for view in VIEWS[language]:
        page.click(f"nav >> text='{view}'")
        settled(page)
        assert page.locator("nav [aria-current]").inner_text() == view
        assert page.locator("[role=alert]").count() == 0
        assert page.locator("main").inner_text().strip()
    assert page.get_attribute("html", "lang") == language


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence(open_page, address, language):
    text, word, model = TEXTS[language], WORDS[language], language[:2]
    page = settled(open_page({"text": text}, language=language))
    found = ask(page, address, "surprisal", text=text, model=model)["words"]
    shown = page.locator(".word small").all_inner_texts()
    assert shown == [f"{one['both']:.1f}" for one in found]
    page.locator(".choice label").first.click()
    page.wait_for_selector(".word")
    settled(page)
    assert page.locator(".word small").all_inner_texts() == [f"{one['forward']:.1f}" for one in found]
    table = saved_table(page)
    assert [(float(row["both"]), int(row["rank_forward"])) for row in table] == [
        (one["both"], one["ranks"]["forward"]) for one in found
    ]

    position = [one["word"] for one in found].index(word)
    page.locator(".word").nth(position).click()
    settled(page)
    expected = ask(page, address, "substitutes", text=text, position=position, model=model, view="fits")
    page.wait_for_selector(".chosen .bars")
    assert page.locator(".chosen .bars").first.locator("button").all_inner_texts() == [
        one["word"] for one in expected["candidates"]
    ]
    near = {"query": text, "position": position, "corpus": model, "k": 10}
    for layer in ("average", 0):
        expected = ask(page, address, "neighbors", **near, layers=layer)
        cosines = page.locator(".sentences a").all_inner_texts()
        assert cosines == [f"{one['cosine']:.2f}" for one in expected["neighbors"]]
        page.locator("input[type=range]").fill("0")
        settled(page)
    assert state_of(page)["layer"] == "0"
    assert len(saved_table(page, ".chosen section:last-child")) == 10 + len(expected["words"]) + len(expected["static"])


@browsing
def test_a_word_that_the_corpus_lacks_and_one_put_in(open_page):
    page = settled(open_page({"text": "He saw a zebra.", "at": 9}))
    assert "does not have “zebra”" in page.locator(".chosen").inner_text()
    word = page.locator(".chosen .bars button").first
    other = word.inner_text()
    word.click()
    page.wait_for_url(lambda url: f"+{quote(other)}." in url)
    assert settled(page).locator(".word[aria-pressed=true]").inner_text().split("\n")[0] == other


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_two_sentences(open_page, address, language):
    page = settled(open_page({"view": "pair"}, language=language))
    first, second = (page.locator("main input[type=text]").nth(one).input_value() for one in (0, 1))
    found = ask(page, address, "cosines", first=first, second=second, layers="all", model=language[:2])
    *_, top, average = found["cosines"].values()
    shown = [f"{one:.2f}".replace("-0.00", "0.00") for row in top for one in row]
    assert page.locator(".cell").all_inner_texts() == shown
    assert page.locator(".by-layer h2").inner_text() == f"{WORDS[language]} / {WORDS[language]}"
    assert page.locator(".by-layer small").first.inner_text() == "1.00"  # layer 0
    page.locator("input[type=range]").fill("0")
    page.wait_for_selector(".cell[aria-pressed=true] >> text='1.00'")
    page.locator(".cell[aria-pressed=true]").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    page.wait_for_url(re.compile(r"cell="))
    row, column = (int(one) for one in state_of(page)["cell"].split("."))
    assert page.evaluate("document.activeElement.ariaLabel").startswith(
        f"{found['first'][row]['text']} / {found['second'][column]['text']}: "
    )
    assert [float(one["layer_average"]) for one in saved_table(page)] == [one for row in average for one in row]


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_word_in_the_corpus(open_page, address, language):
    corpus, word = language[:2], WORDS[language]
    page = open_page({"view": "word", "corpus": corpus, "word": word, "count": 2}, language=language)
    page.wait_for_selector("button.sense")
    found = ask(page, address, "concordance", corpus=corpus, word=word, count=2, reach=500)
    assert page.locator("button.sense").count() == len(found["senses"]) == 2
    names = {"en": ("Group 1", "Sense 1"), "zh": ("第 1 组", "词义 1")}[corpus]
    assert page.locator("button.sense b").first.inner_text() == names[found["confidence"] is not None]
    assert str(found["count"]) in page.locator(".count").inner_text()

    page.locator("button.sense").nth(1).click()  # senses filter lines
    page.wait_for_url(re.compile(r"sense=2"))
    table = saved_table(page)
    assert len(table) == found["senses"][1]["count"]
    assert {row["sense"] for row in table} == {"2"}
    page.locator(".choice label").nth(2).click()  # by what stands to the right
    page.wait_for_url(re.compile(r"sort=right"))
    assert sorted(row["right"] for row in saved_table(page)) == sorted(row["right"] for row in table)
    page.locator(".counted button").click()
    page.wait_for_url(lambda url: "sense" not in url)

    numbers = [("x", float), ("y", float), ("sentence", int), ("left", str), ("right", str)]
    page.locator(".choice label").first.click()
    page.wait_for_url(re.compile(r"sort=text"))
    rows = [{name: kind(row[name]) for name, kind in numbers} for row in saved_table(page)]
    assert rows == [{name: line[name] for name, _ in numbers} for line in found["lines"]]


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_senses_that_are_not_told_apart(open_page, address, language):
    """The page says how sure that is, and shows groups on request."""
    corpus, word = language[:2], WORDS[language]
    page = open_page({"view": "word", "corpus": corpus, "word": word}, language=language)
    page.wait_for_selector("button.sense")
    found = ask(page, address, "concordance", corpus=corpus, word=word)
    assert len(found["senses"]) == 1
    assert f"{found['confidence']:.0%}" in page.locator(".undivided").inner_text()
    page.click(".undivided button")
    page.wait_for_url(re.compile(r"count=2"))
    page.wait_for_selector("button.sense >> nth=1")
    assert page.locator(".undivided").count() == 0


@browsing
def test_points_and_lines_are_linked(open_page):
    page = settled(open_page({"view": "word", "corpus": "en", "word": "bank"}))
    page.wait_for_selector(".scatter canvas")
    page.locator(".line").nth(2).click()
    page.wait_for_url(re.compile(r"line=2"))
    page.wait_for_selector(".line[aria-selected=true]")  # the address is there first
    assert page.locator(".line[aria-selected=true]").count() == 1
    assert page.locator(".whole mark").inner_text() == "bank"
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile(r"line=3"))

    box = page.locator(".scatter canvas").bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"box="))
    left, bottom, right, top = map(float, state_of(page)["box"].split(","))
    lines = saved_table(page)
    every = int(page.locator(".count").inner_text().split()[2])
    assert 0 < len(lines) < every
    assert all(left <= float(row["x"]) <= right and bottom <= float(row["y"]) <= top for row in lines)
    page.click("text='Look at the sentence'", force=True)
    page.wait_for_selector(".word[aria-pressed=true] >> text=bank")


@browsing
def test_documents(open_page):
    page = open_page({"view": "word", "corpus": "documents", "word": "bank"})
    page.click(".side button >> text='two.txt'")
    page.wait_for_url(re.compile(r"document=two"))
    page.wait_for_selector(".count >> text='1 of 3 lines'")
    page.click(".side button >> text='two.txt'")
    page.get_by_label("Only lines with").fill("LENDS")
    page.wait_for_selector(".count >> text='1 of 3 lines'")
    assert "lends money" in page.locator(".line").inner_text()


@browsing
def test_ten_thousand_lines(open_page, address):
    """The lines of the sample again and again: only those that are seen are in the page, and filtering is quick."""
    page = settled(open_page())
    real = ask(page, address, "concordance", corpus="en", word="bank")
    real["lines"] = [real["lines"][number % len(real["lines"])] for number in range(LINES)]
    answer = json.dumps(real)
    page.route("**/concordance", lambda route: route.fulfill(body=answer, content_type="application/json"))
    page.click("nav >> text='Corpus'")
    page.wait_for_selector("button.sense")
    field = page.get_by_label("Only lines with")
    for wanted in ("river", "mon", "the", "he", "bank of"):
        field.fill(wanted)
        page.wait_for_url(lambda url, text=wanted: urlencode({"containing": text}) in url)
        page.wait_for_timeout(50)
    page.locator("button.sense").first.click()
    page.wait_for_selector("button.sense[aria-pressed=true]")
    times = page.evaluate("performance.getEntriesByName('elmokit filter').map(one => one.duration)")
    print("milliseconds to filter 10,000 lines:", [round(time, 1) for time in times])
    assert min(times[2:]) < QUICK
    assert page.locator(".line").count() < 60
    page.locator(".kwic").evaluate("one => { one.scrollTop = one.scrollHeight }")
    last = len([line for line in real["lines"] if line["sense"] == 1 and "bank of" in f"bank{line['right']}"])
    page.wait_for_selector(f".line[aria-rowindex='{last}']")


@browsing
def test_the_model(open_page, address):
    page = settled(open_page({"view": "model", "name": "zh"}))
    [_, model] = page.request.get(f"{address}info").json()["models"]
    text = page.locator("main").inner_text()
    assert f"{model['parameters']:,}" in text
    assert f"{model['vocabulary']:,}" in text
    headings = re.findall(r"^## (.+)$", model["card"], re.MULTILINE)
    assert page.locator(".card h3").all_inner_texts() == headings
    assert page.locator(".card table").count() == len(re.findall(r"^\|-", model["card"], re.MULTILINE))
    cells = page.locator(".card table").evaluate_all(
        "all => all.map(one => [...one.rows].map(row => row.cells.length))"
    )
    assert all(len(set(counts)) == 1 for counts in cells), cells  # a bar within a cell is no end of it
    assert not re.search(r"\]\(|\\\|", page.locator(".card").inner_text())
    assert page.locator(".storeys > div").count() == model["layers"]


@browsing
def test_a_task(open_page, address):
    page = settled(open_page({"view": "task", "text": "Anna sings in Paris"}))
    [answer] = ask(page, address, "tasks/entities", inputs=["Anna sings in Paris"])["answers"]
    spans = [tag[2:] for tag in answer["tags"] if tag.startswith("B-")]
    assert page.locator(".spanned .span > small").all_inner_texts() == spans
    page.get_by_label("Text").fill("Paris")
    page.click("text='Ask'")
    page.wait_for_url(re.compile("text=Paris"))
    [task] = page.request.get(f"{address}info").json()["tasks"]
    assert [float(row["weight"]) for row in saved_table(page)] == task["mixes"][0]["weights"]
    assert page.locator(".mix .bars li").count() == len(task["mixes"][0]["weights"])


@browsing
def test_pictures(open_page):
    page = open_page(language="zh-CN")
    for view in VIEWS["zh-CN"][:-1]:
        page.click(f"nav >> text='{view}'")
        for kind, beginning in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
            with page.expect_download() as download:
                page.click(f"main >> text='{kind}' >> nth=0")
            content = Path(download.value.path()).read_bytes()
            assert content.startswith(beginning)
            assert len(content) > 500


@browsing
@pytest.mark.parametrize(
    "state",
    [
        {"text": "She put money in the bank.", "at": "21", "direction": "backward", "layer": "1"},
        {"view": "pair", "first": "a bank & a river", "second": "the bank = #1", "layer": "0", "cell": "1.1"},
        {"view": "word", "corpus": "en", "word": "spring", "sort": "left", "sense": "1", "line": "5"},
    ],
)
def test_an_address_shows_the_same_to_another(open_page, state):
    page = settled(open_page(state))
    page.wait_for_selector("main .result")
    again = settled(open_page(urlsplit(page.url).fragment))
    assert state_of(again) == state
    if state.get("view") == "word":
        for one in (page, again):
            one.wait_for_selector("button.sense[aria-pressed=true]")
    assert again.locator("main").inner_text() == page.locator("main").inner_text()
    assert page.locator("[aria-pressed=true], [aria-selected=true]").count() > 1  # with the language


@browsing
def test_back(open_page):
    page = settled(open_page())
    page.click("nav >> text='Two sentences'")
    page.click("text='spring ≠ spring'")
    page.wait_for_selector(".by-layer >> text='spring / spring'")
    page.go_back()
    page.wait_for_selector(".by-layer >> text='bank / bank'")


@browsing
def test_the_language_is_switched_and_kept(open_page):
    page = settled(open_page({"view": "pair"}))
    page.click("text='中文'")
    assert page.locator("nav a").all_inner_texts() == VIEWS["zh-CN"]
    page.reload()
    settled(page)
    assert page.locator("nav a").all_inner_texts() == VIEWS["zh-CN"]
    page.click("text='English'")
    assert page.locator("nav a").all_inner_texts() == VIEWS["en"]


@browsing
def test_markup_is_text(open_page):
    for state in (
        {"text": EVIL},
        {"view": "pair", "first": EVIL, "second": EVIL},
        {"view": "word", "corpus": "documents", "word": "bank", "line": "0"},
        {"view": "task", "text": EVIL},
        {"view": "word", "corpus": "documents", "word": EVIL},
    ):
        page = settled(open_page(state))
        page.wait_for_selector("main >> text=script")
        assert page.title().startswith("elmokit")
        assert page.locator("main script, main img").count() == 0


@browsing
@pytest.mark.parametrize("language", LANGUAGES)
def test_narrow(open_page, language):
    page = open_page(language=language, viewport={"width": 390, "height": 800})
    for view in VIEWS[language]:
        page.click(f"nav >> text='{view}'")
        assert settled(page).evaluate("document.documentElement.scrollWidth") <= 390


@browsing
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(open_page, scheme):
    """Text is at least 4.5 times as bright as what is behind it, or the other way round (WCAG AA)."""
    page = settled(open_page(color_scheme=scheme))
    style = "one => getComputedStyle(document.documentElement).getPropertyValue(one)"
    colors = {name: page.evaluate(style, f"--{name}").strip() for name in ("ink", "quiet", "accent", "wrong")}
    behind = {name: page.evaluate(style, f"--{name}").strip() for name in ("paper", "raised")}
    pairs = [(one, other) for one in colors.values() for other in behind.values()]
    shades = [page.evaluate(style, f"--{name}").strip() for name in ("warm", "cool", "accent-soft")]
    pairs += [(colors["ink"], shade) for shade in shades]
    assert {pair: round(contrast(*pair), 2) for pair in pairs if contrast(*pair) < 4.5} == {}


def contrast(one, other):
    def luminance(color):
        channels = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@browsing
def test_what_the_server_refuses_is_said(open_page):
    page = settled(open_page({"view": "word", "corpus": "en", "word": "zebra"}))
    assert "has no word 'zebra'" in page.locator("[role=alert]").inner_text()
    page = settled(open_page({"text": "bank " * 9000}))
    assert "the limit is 8,192" in page.locator("[role=alert]").inner_text()
    page.route("**/surprisal", lambda route: route.abort())
    page.get_by_label("Your sentence").fill("Gone.")
    page.wait_for_selector("[role=alert] >> text='The server does not answer. Is it still running?'")


@browsing
def test_a_server_with_a_key(open_page):
    with listening(open_service(["en"], settings=ServeSettings(key="secret"))) as address:
        page = open_page(at=address)
        assert "wants a key" in page.locator("form").inner_text()
        page.get_by_label("The server's key").fill("wrong")
        page.click("text='Go'")
        page.wait_for_selector("[role=alert] >> text=wrong")
        page.get_by_label("The server's key").fill("secret")
        page.click("text='Go'")
        settled(page)
        assert page.locator("nav a").all_inner_texts() == ["Sentence", "Two sentences", "Model"]


@browsing
def test_an_index_under_way(open_page, tmp_path, monkeypatch):
    """The page says how far it is, answers what it can, and shows the lines once they are there."""
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "small.txt").write_text("The bank of the river.\nThe bank lends money.\n")
    service, go_on = open_service(["en"], corpora=[tmp_path / "small.txt"]), threading.Event()
    watch = service.corpora["small"].watch
    update = watch.update

    def slow(*numbers, **more):
        update(*numbers, **more)
        go_on.wait(60)

    monkeypatch.setattr(watch, "update", slow)
    with listening(service) as address:
        page = open_page({"view": "word"}, at=address)
        page.wait_for_selector(".news >> text=“small” is being indexed")
        assert "not ready yet" in page.locator("main").inner_text()
        page.click("nav >> text='Sentence'")
        page.wait_for_selector(".word")
        page.click("nav >> text='Corpus'")
        go_on.set()
        page.wait_for_selector(".line >> text=lends money")
        settled(page)


PARTIAL = """
const post = async (route, body) => (await fetch(route, {method: "POST", body: JSON.stringify(body),
  headers: {"Content-Type": "application/json"}})).json();
export const backend = {
  can(name) { return name in this; },
  async info() {
    const {models} = await (await fetch("info")).json();
    return {models: models.map(({name, layers, vocabulary, tokenizer}) => ({name, layers, vocabulary, tokenizer}))};
  },
  surprisal: (text, model) => post("surprisal", {text, model}),
  substitutes: (question) => post("substitutes", question),
  cosines: (question) => post("cosines", question),
};
"""


@browsing
def test_another_backend_with_some_methods(browser, address):
    """What it cannot answer is not offered."""
    page = browser.new_context(locale="en").new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(error.message))
    page.route("**/page/backend.js", lambda route: route.fulfill(body=PARTIAL, content_type="text/javascript"))
    page.goto(address)
    page.wait_for_selector(".chosen .bars")
    assert page.locator("nav a").all_inner_texts() == ["Sentence", "Two sentences", "Model"]
    assert page.locator(".chosen section").count() == 1
    for view in ("Two sentences", "Model"):
        page.click(f"nav >> text='{view}'")
        page.wait_for_selector("main article >> text=layer")
    page.context.close()
    assert wrong == []


def test_every_text_is_there_in_both_languages():
    texts = (PAGE / "texts.js").read_text(encoding="utf-8")
    table = texts[texts.index("const TEXTS") : texts.index("\n};")]
    entries = re.findall(r'^  "?([\w-]+)"?: \[\s*"(?:[^"\\]|\\.)+",\s*"(?:[^"\\]|\\.)+",?\s*\],$', table, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^  [\w\"-]+: \[", table, re.MULTILINE)) == len(set(entries))
    used = {name for file in PAGE.glob("*.js") for name in re.findall(r'\bt\(\s*"([\w-]+)"', file.read_text("utf-8"))}
    assert used <= set(entries)


def test_nothing_comes_from_elsewhere():
    """All addresses in the page's files are relative, so that it works without a network and from a folder."""
    allowed = {"http://www.w3.org/2000/svg"}
    for file in PAGE.iterdir():
        content = file.read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[\w./]+", content)) <= allowed, file
        assert not re.findall(r'(?:src|href)="/|from "(?!\./)|url\(', content), file
        assert "innerHTML" not in content, file
