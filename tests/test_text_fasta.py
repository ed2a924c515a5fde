"""Proteins: a record is a document, a residue a token, for models of others and for one's own."""

import gzip

import numpy as np
import pytest
from conftest import HERE

import elmokit
from elmokit.cli import main
from elmokit.config import TOKENIZER_NAMES
from elmokit.errors import DataError
from elmokit.pretrain import pretrain, read_recipe
from elmokit.text.corpus import open_corpus
from elmokit.text.documents import iter_documents, open_texts
from elmokit.text.tokenizers import get_tokenizer
from elmokit.vectors import read_vectors

FASTA = """\
; a comment of the old kind
>sp|P69905|HBA_HUMAN Hemoglobin subunit alpha
MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHG
KKVADALTNAVAHVDDMPNALSALSDLHAHKLRVDPVNFKLLSHCLLVTLAAHLPAEFTP
>empty

>two with gaps
mk-ta.yi*
"""
FIRST = FASTA.split("alpha\n")[1].split(">")[0].replace("\n", "")


@pytest.fixture(params=["a.fasta", "a.fa", "a.faa", "a.fasta.gz", "a.FASTA"])
def path(request, tmp_path):
    path = tmp_path / request.param
    path.write_bytes((gzip.compress if path.suffix == ".gz" else bytes)(FASTA.encode()))
    return path


def test_a_record_is_a_document(path):
    documents = [(document.name, document.text) for document in iter_documents(open_texts([path]))]
    assert documents == [(f"{path}:sp|P69905|HBA_HUMAN", " ".join(FIRST)), (f"{path}:two", "M K T A Y I")]


@pytest.mark.parametrize("name", TOKENIZER_NAMES)
def test_a_residue_is_a_token_to_every_tokenizer(path, name):
    if name == "icu":
        pytest.importorskip("icu4py")
    assert [context.words for context in open_corpus(path, get_tokenizer(name))] == [list(FIRST), list("MKTAYI")]


def test_a_folder_of_them(tmp_path):
    (tmp_path / "a.fasta").write_text(FASTA)
    (tmp_path / "b.txt").write_text("Some text.")
    assert len(list(iter_documents(open_texts(tmp_path)))) == 3


BROKEN = {
    "no name": ("MKTAYI\n", "line 1: a sequence without a name: a FASTA record begins with '>'"),
    "prose": (">x\nMKT\nIt's a text, really\n", r"line 3: ('''|\"'\") is no residue: is it a FASTA file\?"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_fasta_is_named(tmp_path, name):
    content, message = BROKEN[name]
    (tmp_path / "a.fasta").write_text(content)
    with pytest.raises(DataError, match=rf"a\.fasta, {message}"):
        list(iter_documents(open_texts([tmp_path / "a.fasta"])))


def test_seqvec_gives_every_residue_its_vector(tmp_path):
    (tmp_path / "a.fasta").write_text(FASTA)
    model = HERE / "data" / "formats" / "seqvec"
    main(["embed", str(tmp_path / "a.fasta"), "-m", str(model), "-o", str(tmp_path / "vectors.npz")])
    expected = elmokit.load(model).embed([list(FIRST), list("MKTAYI")])
    found = [np.asarray(one) for one in read_vectors(tmp_path / "vectors.npz")]
    assert [one.shape for one in found] == [one.shape for one in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)  # batches of other sizes


def test_a_protein_model_of_ones_own(tmp_path):
    draw = np.random.default_rng(0)
    sequences = ["".join(draw.choice(list("ACDEFGHIKLMNPQRSTVWY"), 80)) for _ in range(30)]
    (tmp_path / "a.fasta").write_text("".join(f">{number}\n{one}\n" for number, one in enumerate(sequences)))
    values = read_recipe("tiny")
    values["training"] |= {"epochs": 1, "batch": 4}
    pretrain([tmp_path / "a.fasta"], tmp_path / "run", values, workers=1)
    elmo = elmokit.load(tmp_path / "run")
    assert set(elmo.vocabulary.words[3:]) == set("ACDEFGHIKLMNPQRSTVWY")
