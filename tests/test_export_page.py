"""A page that was exported, in a real browser: from a disk and from a plain file server it gives what Python gives."""

import base64
import gzip
import http.server
import json
import shutil
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import CONFIGS, random_elmo

import elmokit
from elmokit.cli import main
from elmokit.config import TokenizerConfig
from elmokit.errors import ConfigError
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.lexicon.ranks import rank_words
from elmokit.lexicon.substitution import substitutes
from elmokit.pretrain.evaluation import mean_prediction
from elmokit.serve.bundle import bundle
from elmokit.serve.page_export import write_page
from elmokit.text.javascript import describe_tokenizer, jieba_dictionary
from elmokit.text.tokenizers import get_tokenizer
from elmokit.text.vocabulary import BOS, EOS

SAMPLES = Path(__file__).parents[1] / "samples"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SLOW = 60_000  # milliseconds, on a busy machine
OWN = "our own #1 模型"
BACKEND = 'modules["browser/backend.js"]'
SENTENCES = {
    "en": [
        "He sat on the bank of the river, and watched the boats.",
        "They don't know the naïve constructor Zarathustra 🎉 .",
        "One",
    ],
    "zh": ["昨天小雨花了五块钱买了一本旧书。", "院子里的花开了，T恤也干了 🎉", "花"],
}
WORDS = {
    "en": ["He sat on the [bank] of the river.", "She [quickly] went home.", "The [constructor] went home."],
    "zh": ["院子里的[花]开了。", "他[喝]了一杯茶。"],
}
ODD = [
    "He’s naïve 👩‍👩‍👧 #tag @name a.b@c.de https://x.y/z?q=1. U.S. e.g. Mr. Smith's I'LL 3,000.50 1/2 up-to-date ...",
    "T恤 卡拉OK 我爱\u200b北京 C++语言 #话题# @张三 ，hi 𠮷野家",
    "ภาษาไทย བོད་ཡིག かな漢字カナ 한국어 e\u0301te\u0301 \ufb01ne ①② a\u00adb \x1cfoo\x85bar",
    "",
]
TOKENIZERS = [TokenizerConfig(name=name) for name in ("whitespace", "words", "characters", "auto")]
TOKENIZERS += [TokenizerConfig(name="words", normalize="nfkc"), TokenizerConfig(name="jieba", normalize="nfkc")]
TOKENIZERS += [TokenizerConfig(name="jieba", dictionary=("旧书", "院子里的花", "五块钱"))]


def test_rjieba_knows_its_dictionary():
    import rjieba

    words = [line.split(" ")[0] for line in jieba_dictionary().split("\n")]
    assert len(words) > 300_000
    assert all(map(rjieba.has_word, words))


@pytest.mark.parametrize(
    "settings", [{"name": "icu"}, {"name": "jieba", "hmm": True}, {"name": "jieba", "simplify": True}]
)
def test_a_tokenizer_that_no_page_has(settings):
    with pytest.raises(ConfigError, match="which a page without a server lacks"):
        describe_tokenizer(TokenizerConfig(**settings))


def test_modules_that_make_no_script(tmp_path):
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')
    with pytest.raises(ValueError, match="imports itself"):
        bundle(tmp_path / "a.js")
    (tmp_path / "b.js").write_text("export default 1;\n")
    with pytest.raises(ValueError, match="export default"):
        bundle(tmp_path / "a.js")


def test_mistakes(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("not a page")
    for arguments, said in (
        (["en", "-o", str(tmp_path)], "is not empty"),
        (["-o", str(tmp_path / "new")], "needs a model"),
    ):
        with pytest.raises(SystemExit) as leaving:
            main(["export-page", *arguments])
        assert leaving.value.code == 2
        assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The bundled ones, with the mean prediction over some text; and one that reads words, too, and predicts none."""
    folder = tmp_path_factory.mktemp("models")
    found = {name: elmokit.load(name) for name in SENTENCES}
    for name, elmo in found.items():
        if name == "zh":  # one of them by both directions apart
            elmo.language_model.cloze = None
            elmo.config = replace(elmo.config, cloze=None)
        if elmo.prior is None:
            lines = (SAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            elmo.prior = mean_prediction(elmo, elmo.tokenize(lines[:20]))
    found[OWN] = random_elmo(replace(CONFIGS["frequent_words_and_characters"], layers=1))
    for name, elmo in found.items():
        elmo.save(folder / name, half=name != OWN)
    return {folder / name: elmokit.load(folder / name) for name in found}


@pytest.fixture(scope="module")
def page_folder(models, tmp_path_factory):
    pytest.importorskip("onnxscript", reason="needs the extra 'onnx'")
    folder = tmp_path_factory.mktemp("exported") / "page"
    write_page(list(models), folder)
    return folder


def unpacked(folder, name):
    return gzip.decompress(base64.b64decode((folder / f"{name}.js").read_text(encoding="ascii").rsplit('"', 2)[1]))


def test_graphs(page_folder, named):
    onnxruntime = pytest.importorskip("onnxruntime")
    name, elmo = named
    words = elmo.tokens(SENTENCES[name][0])

    def run(graph, **inputs):
        return onnxruntime.InferenceSession(unpacked(page_folder, f"models/{name}/{graph}.onnx")).run(None, inputs)[0]

    ids = zip(("char_ids", "word_ids"), elmo.encoder.encode([BOS, *words, EOS]), strict=True)
    x = run("words", **{given: part for given, part in ids if part is not None})  # (T + 2, P)
    layers = run("layers", x=x[:, None], lengths=np.array([len(x)]))[:, :, 0]  # (L + 1, T + 2, 2P)
    np.testing.assert_allclose(layers[:, 1:-1], elmo.embed([words], layers="all")[0], atol=1e-5)
    forward, backward = np.split(layers[-1], 2, axis=-1)
    expected = elmo.predictions(words)
    np.testing.assert_allclose(run("softmax", h=forward[:-2]), expected.forward, atol=1e-4)
    np.testing.assert_allclose(run("softmax", h=backward[2:]), expected.backward, atol=1e-4)
    if elmo.language_model.cloze is not None:
        joined = elmo.language_model.cloze(*map(torch.from_numpy, (forward[:-2], backward[2:])))
        np.testing.assert_allclose(run("cloze", before=forward[:-2], after=backward[2:]), joined, atol=1e-4)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=SLOW)
        yield browser
        browser.close()


@contextmanager
def opened(browser, folder):
    """The page, which asks for nothing that is not in its folder."""
    page = browser.new_page()
    page.set_default_timeout(SLOW)
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{folder}/index.html")
    yield page
    assert problems == []
    assert {url for url in asked if not url.startswith((f"{folder}/", "blob:"))} == set()
    page.close()


@pytest.fixture(scope="module")
def page(browser, page_folder):
    with opened(browser, page_folder.as_uri()) as page:
        yield page


@pytest.fixture(scope="module")
def ask(page):
    return partial(answer, page)


def answer(page, method, *question):
    given = ", ".join(json.dumps(part) for part in question)
    return page.evaluate(f"{BACKEND}.backend.{method}({given})")


@pytest.fixture(params=SENTENCES)
def named(request, models):
    return next((path.name, elmo) for path, elmo in models.items() if path.name == request.param)


def test_the_page_shows_a_sentence(page):
    page.wait_for_selector(".words .word")
    shown = page.locator(".words .word").all_inner_texts()
    assert [text.split("\n")[0] for text in shown[:4]] == ["He", "sat", "on", "the"]


def test_tokens(page, named):
    name, elmo = named
    lines = [*SENTENCES[name], *ODD, *(SAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()]
    found = page.evaluate(f"lines => {BACKEND}.openModel('{name}').then((one) => lines.map(one.tokenize))", lines)
    assert found == expected_tokens(elmo.tokenizer, lines)


@pytest.mark.parametrize("config", TOKENIZERS, ids=lambda config: f"{config.name} {config.normalize}")
def test_tokens_of_other_tokenizers(page, config):
    lines = [*ODD, *(sentence for some in SENTENCES.values() for sentence in some)]
    settings = describe_tokenizer(config)
    script = f"([settings, lines]) => {BACKEND}.openTokenizer(settings).then((tokenize) => lines.map(tokenize))"
    assert page.evaluate(script, [settings, lines]) == expected_tokens(get_tokenizer(config), lines)


def expected_tokens(tokenizer, lines):
    return [[{"text": text, "start": start, "stop": stop} for text, start, stop in tokenizer(line)] for line in lines]


def close(expected, **tolerance):
    return None if expected is None else pytest.approx(expected, **tolerance)


def test_surprisal(ask, named):
    name, elmo = named
    for sentence in SENTENCES[name]:
        found, expected = ask("surprisal", sentence, name), rank_words(elmo, sentence)
        assert [found["end"], found["begin"]] == close([expected.end, expected.begin], abs=1e-3)
        for one, other in zip(found["words"], expected.words, strict=True):
            assert (one["word"], one["known"]) == (other.word, other.known)
            for field in ("forward", "backward", "forward_entropy", "backward_entropy", "both"):
                assert one[field] == close(getattr(other, field), abs=1e-3), field
            ranks = other.ranks and other.ranks._asdict()
            assert one["ranks"] == close(ranks, abs=1, rel=1e-3)  # words as probable but for rounding change places


@pytest.mark.parametrize("view", ["fits", "means-the-same"])
def test_substitutes(ask, named, view):
    name, elmo = named
    for text in WORDS[name]:
        expected = substitutes(elmo, text, view=view)
        found = ask("substitutes", {"text": text, "view": view, "model": name})
        assert [one["word"] for one in found["candidates"]] == [one.word for one in expected.candidates]
        probabilities = [one.probability for one in expected.candidates]
        assert [one["probability"] for one in found["candidates"]] == pytest.approx(probabilities, rel=1e-3)
        assert found["probability"] == close(expected.probability, rel=1e-3)
        assert found["rank"] == close(expected.rank, abs=1, rel=1e-3)
        assert (found["word"], found["view"]) == (expected.word, view)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_substitutes_of_one_direction_at_a_position(ask, named, direction):
    name, elmo = named
    text, position = WORDS[name][0].replace("[", "").replace("]", ""), 1
    words = elmo.tokens(text)
    bracketed = " ".join(f"[{word}]" if index == position else word for index, word in enumerate(words))
    expected = substitutes(elmo, bracketed, view="fits", direction=direction)
    question = {"text": text, "position": position, "view": "fits", "direction": direction, "model": name}
    assert [one["word"] for one in ask("substitutes", question)["candidates"]] == [
        one.word for one in expected.candidates
    ]


@pytest.mark.parametrize("layers", ["all", "top", 0])
def test_cosines(ask, models, layers):
    """Also of a model that reads words, in 16 bits, which it was not made in."""
    for path, elmo in models.items():
        first, second = SENTENCES.get(path.name, SENTENCES["en"])[:2]
        found = ask("cosines", {"first": first, "second": second, "layers": layers, "model": path.name})
        one, other = elmo.embed([first, second], layers=layers)
        if layers == "all":
            names = [*map(str, range(elmo.layer_count)), "average"]
            pairs = [*zip(one, other, strict=True), (one.mean(axis=0), other.mean(axis=0))]
        else:
            names, pairs = [str(layers)], [(one, other)]
        assert list(found["cosines"]) == names
        for name, (left, right) in zip(names, pairs, strict=True):
            expected = unit_vectors(left) @ unit_vectors(right).T
            assert found["cosines"][name] == [pytest.approx(row, abs=1e-3) for row in expected.tolist()]
        assert [token["text"] for token in found["second"]] == elmo.tokens(second)


def test_a_server_changes_nothing(browser, page_folder, ask):
    serving = partial(Handler, directory=str(page_folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serving) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with opened(browser, f"http://127.0.0.1:{server.server_port}") as page:
            for name, (first, second, _) in SENTENCES.items():
                pair = {"first": first, "second": second, "layers": "all", "model": name}
                word = {"text": WORDS[name][0], "model": name}
                for question in (("surprisal", first, name), ("substitutes", word), ("cosines", pair)):
                    assert answer(page, *question) == ask(*question)
        server.shutdown()


def test_an_empty_text(ask, models):
    assert ask("surprisal", "", "en")["words"] == []
    assert ask("cosines", {"first": "", "second": "word", "model": OWN})["cosines"] == {"average": []}


def test_a_mistake_is_told(page, ask):
    from playwright.sync_api import Error

    with pytest.raises(Error, match="put brackets around one word"):
        ask("substitutes", {"text": "no brackets", "model": "en"})
    assert len(ask("info")["models"]) == 3
