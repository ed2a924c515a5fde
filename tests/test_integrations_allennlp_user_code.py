"""Code as people wrote it for AllenNLP's ELMo, with the import changed."""

import h5py
import numpy as np
import pytest
import torch
from conftest import GOLDEN, GOLDEN_SENTENCES

from elmokit.integrations.allennlp import (
    Elmo,
    ELMoCharacterMapper,
    ElmoEmbedder,
    ELMoTokenCharactersIndexer,
    ElmoTokenEmbedder,
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    batch_to_ids,
    remove_sentence_boundaries,
)

FILES = GOLDEN / "base" / "options.json", GOLDEN / "base" / "weights.hdf5"
SENTENCES = [["First", "sentence", "."], ["Another", "."]]


class Word:
    """A token as AllenNLP and spaCy have it."""

    def __init__(self, text):
        self.text = text


def vectors_of(elmo, sentences=SENTENCES):
    return elmo(batch_to_ids(sentences))["elmo_representations"][0].detach()


class TestState:
    def test_turned_off_and_on(self):
        elmo = Elmo(*FILES, 1, dropout=0.0, stateful=True)
        first, second = vectors_of(elmo), vectors_of(elmo)
        assert (first - second).abs().max() > 1e-3
        elmo._elmo_lstm._elmo_lstm.stateful = False
        assert torch.equal(vectors_of(elmo), first)
        elmo._elmo_lstm._elmo_lstm.stateful = True
        assert (vectors_of(elmo) - first).abs().max() > 1e-3  # from where the second call ended

    @pytest.mark.parametrize("forget", ["reset_states", "_states"])
    def test_forgotten(self, forget):
        elmo = Elmo(*FILES, 1, dropout=0.0, stateful=True)
        first = vectors_of(elmo)
        if forget == "reset_states":
            elmo._elmo_lstm._elmo_lstm.reset_states()
        else:
            elmo._elmo_lstm._elmo_lstm._states = None
        assert torch.equal(vectors_of(elmo), first)

    def test_of_a_token_embedder(self):
        embedder = ElmoTokenEmbedder(*FILES, dropout=0.0)
        ids = batch_to_ids(SENTENCES)
        assert torch.equal(embedder(ids), embedder(ids))
        embedder._elmo._elmo_lstm._elmo_lstm.stateful = True
        assert not torch.equal(embedder(ids), embedder(ids))

    def test_only_the_bilm_itself_carries_it_unasked(self):
        bilm, ids = _ElmoBiLm(*FILES), batch_to_ids(SENTENCES)
        first, second = (bilm(ids)["activations"][1] for _ in range(2))
        assert (first - second).abs().max() > 1e-3
        quiet = _ElmoBiLm(*FILES, stateful=False)
        assert torch.equal(quiet(ids)["activations"][1], quiet(ids)["activations"][1])


class TestModulesWithin:
    def test_names_of_weights_tell_their_place(self):
        """Parameter groups and frozen parts are chosen by such names."""
        names = [name for name, _ in ElmoTokenEmbedder(*FILES, projection_dim=3).named_parameters()]
        layers = [
            f"_elmo_lstm.{direction}_layer_{number}." for direction in ("forward", "backward") for number in (0, 1)
        ]
        places = [f"_elmo._elmo_lstm.{place}" for place in ("_token_embedder.", *layers)]
        inner = [name for name in names if "_elmo_lstm" in name]
        for place in places:
            assert any(name.startswith(place) for name in inner)
        assert all(name.startswith(tuple(places)) for name in inner)

    def test_the_token_embedder_within_is_the_one_by_itself(self):
        ids = batch_to_ids(GOLDEN_SENTENCES)
        within = Elmo(*FILES, 1)._elmo_lstm._token_embedder
        expected = _ElmoCharacterEncoder(*FILES)(ids)
        for name, found in within(ids).items():
            torch.testing.assert_close(found, expected[name])
        state = _ElmoCharacterEncoder(*FILES).state_dict()
        assert {"_char_embedding_weights", "char_conv_0.weight", "_projection.bias"} <= state.keys()
        assert len(state["_char_embedding_weights"]) == 262
        assert not any("layer_" in name for name in state)
        within.load_state_dict(state)

    def test_a_module_put_in_the_place_of_the_recurrent_layers(self):
        """As those do who change the token vectors before these are run."""

        class Turned(torch.nn.Module):
            def __init__(self, lstm, width):
                super().__init__()
                self.lstm, self.matrix = lstm, torch.nn.Parameter(torch.eye(width))

            def forward(self, inputs, mask):
                return self.lstm(inputs @ self.matrix, mask)

        elmo = Elmo(*FILES, 1, dropout=0.0)
        before, bilm = vectors_of(elmo), elmo._elmo_lstm
        bilm._elmo_lstm = Turned(bilm._elmo_lstm, bilm._token_embedder.get_output_dim())
        after = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
        torch.testing.assert_close(after, before, atol=1e-6, rtol=1e-5)
        after.square().sum().backward()
        assert bilm._elmo_lstm.matrix.grad.abs().sum() > 0  # by way of layers that do not learn

    @pytest.mark.parametrize("learning", ["_token_embedder", "_elmo_lstm"])
    def test_one_part_learns_and_the_other_does_not(self, learning):
        elmo = Elmo(*FILES, 1, dropout=0.0)
        getattr(elmo._elmo_lstm, learning).requires_grad_(True)
        elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].square().sum().backward()
        for name, weight in elmo._elmo_lstm.named_parameters():
            assert (weight.grad is not None) == name.startswith(learning), name

    def test_a_vocabulary_alone_is_enough(self):
        """The character encoder may be deleted where every word is in the cached vocabulary."""
        elmo = Elmo(*FILES, 1, dropout=0.0, vocab_to_cache=["@@PADDING@@", "First", "sentence", "."])
        expected = vectors_of(elmo, [["First", "sentence", "."]])
        del elmo._elmo_lstm._token_embedder
        numbers = torch.tensor([[1, 2, 3]])
        output = elmo(torch.zeros(1, 3, 50, dtype=torch.long), numbers)
        torch.testing.assert_close(output["elmo_representations"][0].detach(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_ids_at_random(requires_grad):
    """All of a model's weights get gradients, or none, whatever the ids."""
    embedder = ElmoTokenEmbedder(*FILES, requires_grad=requires_grad)
    ids = torch.randint(0, 262, (3, 4, 50), generator=torch.Generator().manual_seed(1))
    embedder(ids).sum().backward()
    found = [weight.grad for name, weight in embedder.named_parameters() if "_elmo_lstm" in name]
    assert len(found) > 10
    assert all((grad is not None and bool(grad.isfinite().all())) == requires_grad for grad in found)


def test_token_embedder_of_more_dimensions():
    embedder = ElmoTokenEmbedder(*FILES, dropout=0.0, projection_dim=4)
    ids = batch_to_ids(GOLDEN_SENTENCES[:4])
    wide = embedder(ids.view(2, 2, *ids.shape[1:]))
    torch.testing.assert_close(wide.flatten(0, 1), embedder(ids))
    assert ElmoTokenEmbedder(*FILES).get_output_dim() == 16
    assert ElmoTokenEmbedder(*FILES)._projection is None


class TestRemoveSentenceBoundaries:
    def test_vectors_and_mask(self):
        tensor = torch.arange(2 * 5 * 2, dtype=torch.float32).view(2, 5, 2) + 1
        mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
        inner, inner_mask = remove_sentence_boundaries(tensor, mask)
        assert inner_mask.tolist() == [[True] * 3, [True, False, False]]
        assert torch.equal(inner[0], tensor[0, 1:4])
        assert torch.equal(inner[1], torch.cat([tensor[1, 1:2], torch.zeros(2, 2)]))

    def test_bounds_without_anything_between(self):
        inner, mask = remove_sentence_boundaries(torch.ones(1, 3, 2), torch.tensor([[1, 1, 0]]))
        assert not inner.any()
        assert mask.tolist() == [[0]]


class TestIndexer:
    def test_the_ids_of_batch_to_ids(self):
        indexer = ELMoTokenCharactersIndexer()
        words = ["Second", "Āt", "<S>", "</S>", "测试", "x" * 60]
        expected = {"elmo_tokens": batch_to_ids([words])[0].tolist()}
        assert indexer.tokens_to_indices([Word(word) for word in words], vocabulary=object()) == expected
        assert indexer.tokens_to_indices(words) == expected
        assert indexer.tokens_to_indices(words, None, "elmo") == {"elmo": expected["elmo_tokens"]}  # as of 0.9
        assert ELMoCharacterMapper().convert_word_to_char_ids("Āt") == expected["elmo_tokens"][1]
        assert expected["elmo_tokens"][1][:6] == [259, 197, 129, 117, 260, 261]

    def test_words_of_ones_own(self):
        indexer = ELMoTokenCharactersIndexer(tokens_to_add={"@start@": 1})
        ((start,), (other,)) = (indexer.tokens_to_indices([word])["elmo_tokens"] for word in ("@start@", "start"))
        assert start == [259, 2, 260] + [261] * 47
        assert other == batch_to_ids([["start"]])[0, 0].tolist()

    def test_padding(self):
        indexer = ELMoTokenCharactersIndexer(token_min_padding_length=3)
        indices = indexer.tokens_to_indices(["two", "words"])
        lengths = indexer.get_padding_lengths(indices)
        assert lengths == {"elmo_tokens": 3}
        padded = indexer.as_padded_tensor_dict(indices, lengths)["elmo_tokens"]
        assert torch.equal(padded, batch_to_ids([["two", "words"], ["a", "b", "c"]])[0])
        assert indexer.as_padded_tensor_dict(indices, {"elmo_tokens": 1})["elmo_tokens"].shape == (1, 50)
        empty = indexer.as_padded_tensor_dict(indexer.get_empty_token_list(), {"elmo_tokens": 2})["elmo_tokens"]
        assert torch.equal(empty, torch.zeros(2, 50, dtype=torch.long))

    def test_counts_nothing(self):
        counter = {}
        ELMoTokenCharactersIndexer().count_vocab_items(Word("word"), counter)
        assert counter == {}


class TestTutorial:
    """What AllenNLP's page on ELMo shows people to do."""

    def test_two_mixes_in_a_model_that_learns(self):
        elmo = Elmo(*FILES, 2, dropout=0)
        first, second = elmo(batch_to_ids(SENTENCES))["elmo_representations"]
        assert first.shape == second.shape == (2, 3, 16)
        task = torch.nn.Linear(16, 2)
        for weight in task.parameters():
            torch.nn.init.zeros_(weight)  # so that every run is the same
        names = {name for name, _ in elmo.named_parameters()}
        mixing = {f"scalar_mix_{mix}.scalar_parameters.{layer}" for mix in range(2) for layer in range(3)}
        assert mixing <= names
        learned = [weight for weight in (*elmo.parameters(), *task.parameters()) if weight.requires_grad]
        optimizer = torch.optim.Adam(learned, lr=0.05)
        losses = []
        for _ in range(60):
            output = elmo(batch_to_ids(SENTENCES))
            vectors, mask = output["elmo_representations"][0], output["mask"].float()
            pooled = (vectors * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
            small = sum(weight.square().sum() for name, weight in elmo.named_parameters() if name in mixing)
            loss = torch.nn.functional.cross_entropy(task(pooled), torch.tensor([0, 1])) + 0.001 * small
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 2
        assert any(weight.item() for weight in elmo.scalar_mix_0.scalar_parameters)
        assert not any(weight.item() for weight in elmo.scalar_mix_1.scalar_parameters)

    def test_interactive(self):
        elmo = ElmoEmbedder(*FILES)
        tokens = ["I", "ate", "an", "apple", "for", "breakfast"]
        vectors = elmo.embed_sentence(tokens)
        assert len(vectors) == 3
        assert len(vectors[0]) == len(tokens)
        others = elmo.embed_sentence(["I", "ate", "a", "carrot", "for", "breakfast"])
        apple, carrot = vectors[2][3], others[2][3]
        assert 0 < apple @ carrot / np.linalg.norm(apple) / np.linalg.norm(carrot) < 1

    def test_to_disk(self, tmp_path):
        (tmp_path / "sentences.txt").write_text("The search is global .\nBitcoin has a share .\n", encoding="utf-8")
        with (tmp_path / "sentences.txt").open(encoding="utf-8") as sentences:
            ElmoEmbedder(*FILES).embed_file(sentences, tmp_path / "layers.hdf5", "all")
        with h5py.File(tmp_path / "layers.hdf5") as file:
            embedding = file.get("0")
            assert len(embedding) == 3
            assert len(embedding[0]) == 5
