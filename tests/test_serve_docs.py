"""What docs/serve.md shows is what the server answers."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from serving import running

from elmokit.serve.app import ROUTERS
from elmokit.serve.settings import Limits

PAGE = (Path(__file__).parents[1] / "docs" / "serve.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|py)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def port():
    with running("--model", "en") as server:
        yield server.port


@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_examples(port, language, code):
    code = code.replace("localhost:8009", f"127.0.0.1:{port}").replace("curl -s", "curl -sf")
    command = ["bash", "-euc", code] if language == "sh" else [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_route_is_named():
    for router in ROUTERS:
        for route in router.routes:
            assert route.path.replace("{name}", "NAME") in PAGE


def test_every_limit_is_as_it_is_said():
    for limit in fields(Limits):
        if limit.name != "lines":
            assert f"--limit.{limit.name.replace('_', '-')}" in PAGE
    known = Limits()
    for number in (known.body_kb, known.texts, known.tokens, known.requests, known.queue_tokens, known.memory_mb):
        assert f"{number:,}" in PAGE
