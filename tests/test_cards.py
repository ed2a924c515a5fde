"""Cards of models: made of what is known, read by the Hub's own library, and kept where people wrote them."""

from dataclasses import replace

import pytest
from conftest import BYTES, CONFIGS, random_checkpoint
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.checkpoints.cards import CARD, card_metadata, front_matter, make_card, without_front_matter
from elmokit.cli import main
from elmokit.config import TokenizerConfig

hub = pytest.importorskip("huggingface_hub")
ABOUT = {
    "name": "north",
    "language": "no, nn",
    "licence": "CC-BY-4.0",
    "datasets": "owner/letters",
    "perplexity": "1,065.5 on 20,000 held-out words",
}
CHECKPOINT = random_checkpoint(BYTES)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_model_has_one(config, tmp_path):
    write_checkpoint(random_checkpoint(config), tmp_path / "model")
    found = hub.metadata_load(tmp_path / "model" / CARD)
    assert found == {
        "library_name": "elmokit",
        "pipeline_tag": "feature-extraction",
        "tags": ["elmo", "word-embeddings", "bilm"],
    }
    assert 'elmokit.load("hf://owner/name")' in (tmp_path / "model" / CARD).read_text()


def test_what_the_hub_reads():
    """The library's own classes read it, and write the same again."""
    checkpoint = replace(random_checkpoint(BYTES), about=ABOUT)
    data = hub.ModelCard(make_card(checkpoint)).data
    assert data.language == ["no", "nn"]  # not false
    assert (data.license, data.datasets, data.model_name) == ("cc-by-4.0", ["owner/letters"], "north")
    [result] = data.eval_results
    assert (result.metric_type, result.metric_value, result.dataset_name) == (
        "perplexity",
        1065.5,
        "20,000 held-out words",
    )
    assert data.to_dict() == card_metadata(checkpoint)


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("CC BY-SA 4.0", {"license": "cc-by-sa-4.0"}),
        ("weights: MIT; texts: public domain", {"license": "mit"}),
        ("ask us", {"license": "other", "license_name": "ask-us"}),
        ("texts: MIT; weights: ask us", {"license": "other", "license_name": "texts-mit"}),
        ("", {}),
    ],
)
def test_licences(licence, expected):
    found = card_metadata(replace(random_checkpoint(BYTES), about={"licence": licence}))
    assert {name: value for name, value in found.items() if "license" in name} == expected


def test_chinese_words_are_chinese():
    for tokenizer in ("jieba", TokenizerConfig(name="jieba", hmm=True)):
        checkpoint = replace(random_checkpoint(BYTES), config=replace(BYTES, tokenizer=tokenizer))
        assert card_metadata(checkpoint)["language"] == ["zh"]


@given(st.dictionaries(st.sampled_from([*ABOUT, "text"]), st.text()))
def test_whatever_is_said_is_yaml(about):
    checkpoint = replace(CHECKPOINT, about=about)
    card = make_card(checkpoint)
    shown = hub.ModelCard(card).data.to_dict()
    assert set(shown) == set(card_metadata(checkpoint))
    assert without_front_matter(card).startswith("# ")


class TestByHand:
    """A card that people wrote goes with the model."""

    @pytest.fixture
    def folder(self, tmp_path):
        write_checkpoint(replace(random_checkpoint(BYTES), about=ABOUT), tmp_path / "model")
        return tmp_path / "model"

    def test_kept(self, folder, tmp_path, capsys):
        written = "---\nlicense: mit\ntags: [ours]\n---\n# Ours\n"
        (folder / CARD).write_text(written)
        elmokit.load(folder).save(tmp_path / "saved", half=True)
        main(["convert", str(tmp_path / "saved"), str(folder), "--overwrite"])
        assert (folder / CARD).read_text() == written

    def test_front_matter_is_added(self, folder):
        (folder / CARD).write_text("# Ours\n\n---\n\nA rule is not front matter.\n")
        checkpoint = read_checkpoint(folder)
        assert make_card(checkpoint) == front_matter(checkpoint) + checkpoint.card
        assert without_front_matter(make_card(checkpoint)) == checkpoint.card

    @pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"---\n", b"\0" * 3_000_000])
    def test_strange_ones_do_no_harm(self, folder, content):
        (folder / CARD).write_bytes(content)
        assert len(make_card(read_checkpoint(folder))) <= 1 << 21

    def test_a_folder_of_that_name(self, folder):
        (folder / CARD).unlink()
        (folder / CARD).mkdir()
        assert read_checkpoint(folder).card is None
