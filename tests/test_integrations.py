"""What all integrations have in common: they wait to be asked, and say what they need."""

import subprocess
import sys
from importlib import import_module

import pytest

from elmokit.errors import MissingExtraError

LIBRARIES = {
    "sklearn": ("sklearn.base", "sklearn"),
    "spacy": ("spacy.language", "spacy"),
    "sentence_transformers": ("sentence_transformers.base.modules", "sentence-transformers"),
    "gensim": ("gensim.models", "static"),
}
"""By the module of the integration, what it imports and the extra that brings it."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_says_the_install_line(name, monkeypatch):
    library, extra = LIBRARIES[name]
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"elmokit.integrations.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=rf'pip install "elmokit\[{extra}\]"'):
        import_module(f"elmokit.integrations.{name}")


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import sys, elmokit, elmokit.integrations; elmokit.load('en').embed(['Yes.']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {library for library, _ in LIBRARIES.values()} & set(done.stdout.split())
