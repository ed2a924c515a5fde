"""The project's page in a real browser: a sentence typed there gets the vectors that `embed` gives.

Needs Chromium, playwright, and `npm install` in docs/onnx.
"""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.onnx_export import write_onnx

PAGE = Path(__file__).parents[1] / "docs" / "onnx"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytest.importorskip("onnxscript", reason="needs the extra 'onnx'")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
    pytest.mark.skipif(not (PAGE / "node_modules").is_dir(), reason="needs `npm install` in docs/onnx"),
]
TYPED = {
    "en": "He sat on the bank of the river , naïve as ever 🎉 .",
    "zh": "今天 天气 很 好 ， 我们 去 公园 散步 。 T恤",
}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page with both bundled models beside it, served."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(PAGE, folder, dirs_exist_ok=True, symlinks=True)
    for name in TYPED:
        write_onnx(elmokit.load(name), folder / f"{name}.onnx", half=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


@pytest.mark.parametrize("model", TYPED)
def test_a_typed_sentence_gets_the_same_vectors(address, model):
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}?model={model}")
        page.wait_for_function("window.vectors", timeout=60_000)
        words = TYPED[model].split()
        page.fill("#sentence", TYPED[model])
        page.wait_for_function(f"document.querySelectorAll('#words tr').length === {len(words)}", timeout=60_000)
        found, state = np.array(page.evaluate("window.vectors")), page.inner_text("#state")
        shown = page.locator("#words tr td:first-child").all_inner_texts()
        browser.close()
    np.testing.assert_allclose(found, elmokit.load(model).embed([words])[0], atol=1e-5)
    assert shown == words
    assert state.startswith(f"{len(words)} words in")
