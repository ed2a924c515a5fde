"""The page as a folder that needs no server: its models as ONNX, run by onnxruntime-web in the browser."""

import base64
import gzip
import json
import lzma
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elmokit import __version__
from elmokit.elmo import Elmo, load
from elmokit.errors import ConfigError
from elmokit.files import replacing_folder
from elmokit.lexicon.function_words import CHINESE, ENGLISH
from elmokit.lexicon.inflections import IRREGULAR
from elmokit.lexicon.substitution import MOST_COMPARED, SHARE, WEIGHT
from elmokit.onnx_export import describe, graphs
from elmokit.serve.bundle import bundle
from elmokit.serve.models import by_name, describe_model, read_card
from elmokit.text.javascript import describe_tokenizer, javascript_patterns, jieba_dictionary

HERE = Path(__file__).parent
PAGE, BROWSER, RUNTIME = HERE / "page", HERE / "browser", HERE / "onnxruntime"
RUN = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
MODULE = '<script type="module" src="page/main.js"></script>'
SCRIPT = '<script defer src="page.js"></script>'
SHARED = ("info.json", "tokenizers.json", "words.json", "jieba.txt")
FILES = ("index.html", "page.js", "page", "models", "onnxruntime", "LICENSES.txt", *(f"{name}.js" for name in SHARED))


def write_page(models: Sequence[str | Path], folder: Path, *, half: bool = True, overwrite: bool = False) -> None:
    """Write the page and these models into a folder that any host serves, and that opens from a disk as well.

    `half` stores 16-bit weights, which are widened when the page opens.
    """
    if not models:
        raise ConfigError("a page needs a model: name one, such as en")
    sources = by_name(models)
    loaded = {name: load(source) for name, source in sources.items()}
    described = [describe_model(name, elmo, read_card(sources[name])) for name, elmo in loaded.items()]
    with replacing_folder(folder, files=FILES, overwrite=overwrite) as partial:
        _write_frame(partial)
        _pack(partial, "info.json", {"version": __version__, "models": described, "corpora": [], "tasks": []})
        _pack(partial, "tokenizers.json", javascript_patterns())
        lists = {"english": sorted(ENGLISH), "chinese": sorted(CHINESE), "irregular": IRREGULAR}
        _pack(partial, "words.json", lists)
        tokenizers = {describe_tokenizer(elmo.config.tokenizer)["name"] for elmo in loaded.values()}
        if tokenizers & {"jieba", "auto"}:
            _pack(partial, "jieba.txt", jieba_dictionary().encode())
        for name, elmo in loaded.items():
            for file, content in _model_files(elmo, half=half):
                _pack(partial, f"models/{name}/{file}", content)


def _write_frame(folder: Path) -> None:
    """The page itself and onnxruntime."""
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    (folder / "index.html").write_text(html.replace(MODULE, SCRIPT), encoding="utf-8")
    (folder / "page.js").write_text(bundle(BROWSER / "main.js"), encoding="utf-8")
    (folder / "page").mkdir()
    for name in re.findall(r'href="page/([^"]+)"', html):
        (folder / "page" / name).write_bytes((PAGE / name).read_bytes())
    for name in RUN:
        _pack(folder, f"onnxruntime/{name}", lzma.decompress((RUNTIME / f"{name}.xz").read_bytes()))
    notices = lzma.decompress((RUNTIME / "ThirdPartyNotices.txt.xz").read_bytes())
    (folder / "onnxruntime" / "ThirdPartyNotices.txt").write_bytes(notices)
    (folder / "LICENSES.txt").write_bytes((RUNTIME / "LICENSES.txt").read_bytes())


def _model_files(elmo: Elmo, *, half: bool) -> Iterator[tuple[str, Any]]:
    """A model's graphs, and what they do not hold."""
    for name, graph in graphs(elmo, half=half).items():
        yield f"{name}.onnx", graph
    beside = msgspec.to_builtins(describe(elmo)) | {"tokenizer": describe_tokenizer(elmo.config.tokenizer)}
    predicts = elmo.language_model.softmax is not None and elmo.vocabulary is not None
    beside["vocabulary"] = elmo.vocabulary.words if predicts and elmo.vocabulary else None
    beside["prior"] = predicts and elmo.prior is not None
    beside["cloze"] = elmo.language_model.cloze is not None
    beside["substitution"] = {"share": SHARE, "weight": WEIGHT, "most_compared": MOST_COMPARED}
    yield "model.json", beside
    if elmo.prior is not None:
        yield "prior", elmo.prior.numpy().astype(np.float32).tobytes()


def _pack(folder: Path, name: str, content: Any) -> None:
    """A file as a script that hands over its content, for pages from a disk may not read files."""
    if not isinstance(content, bytes):
        content = msgspec.json.encode(content)
    packed = base64.b64encode(gzip.compress(content, mtime=0)).decode("ascii")
    path = folder / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'elmokitFile({json.dumps(name)}, "{packed}");\n', encoding="ascii")
