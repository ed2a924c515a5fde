"""Tokens to character ids as AllenNLP numbers them: those of a weights file plus 1, and 0 where there is no token."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import DataError
from elmokit.text.characters import ByteCharacters
from elmokit.text.inputs import tokenized
from elmokit.text.tokenizers import Token
from elmokit.text.vocabulary import BOS, EOS

INDEX_NAME = "elmo_tokens"


def batch_to_ids(batch: Iterable[Sequence[str]], *, max_characters: int = 50) -> Tensor:
    """Character ids, (B, T, C)."""
    sentences = token_lists(batch)
    lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.long)
    mask = torch.arange(max(map(len, sentences), default=0)) < lengths[:, None]  # (B, T)
    ids = torch.zeros(*mask.shape, max_characters, dtype=torch.long)
    words = [word for tokens in sentences for word in tokens]
    ids[mask] = torch.from_numpy(ByteCharacters(max_characters).encode(words)) + 1
    return ids


def token_lists(batch: Iterable[Sequence[str]]) -> list[list[str]]:
    """Sentences as lists of tokens, which they must be."""
    return list(tokenized(batch, _refuse))


def _refuse(text: str) -> list[Token]:
    raise DataError(f"{text!r} came as a sentence: pass its tokens as a list")


class ELMoCharacterMapper:
    """A word to its character ids; `tokens_to_add` are words of one character each, by its number in the file."""

    max_word_length = 50
    bos_token, eos_token = BOS, EOS

    def __init__(self, tokens_to_add: Mapping[str, int] | None = None) -> None:
        self.tokens_to_add = dict(tokens_to_add or {})

    def convert_word_to_char_ids(self, word: str) -> list[int]:
        added = self.tokens_to_add.get(word)
        ids: list[int] = batch_to_ids([[word if added is None else BOS]])[0, 0].tolist()
        return ids if added is None else [ids[0], added + 1, *ids[2:]]


class ELMoTokenCharactersIndexer:
    """Tokens, each a str or an object with a `text`, to lists of character ids, and these to padded tensors."""

    def __init__(
        self,
        namespace: str = "elmo_characters",
        tokens_to_add: Mapping[str, int] | None = None,
        token_min_padding_length: int = 0,
    ) -> None:
        self._namespace, self._token_min_padding_length = namespace, token_min_padding_length
        self._mapper = ELMoCharacterMapper(tokens_to_add)

    def count_vocab_items(self, token: Any, counter: Any) -> None:
        """Do nothing: characters are not counted."""

    def get_empty_token_list(self) -> dict[str, list[list[int]]]:
        return {INDEX_NAME: []}

    def tokens_to_indices(
        self,
        tokens: Iterable[Any],
        vocabulary: Any = None,  # noqa: ARG002
        index_name: str = INDEX_NAME,
    ) -> dict[str, list[list[int]]]:
        """The vocabulary, and the name that AllenNLP 0.9 asked for, need not be given."""
        words = [token if isinstance(token, str) else token.text for token in tokens]
        return {index_name: [self._mapper.convert_word_to_char_ids(word) for word in words]}

    def get_padding_lengths(self, indexed_tokens: Mapping[str, Sequence[Any]]) -> dict[str, int]:
        return {name: max(len(ids), self._token_min_padding_length) for name, ids in indexed_tokens.items()}

    def as_padded_tensor_dict(
        self, tokens: Mapping[str, Sequence[Sequence[int]]], padding_lengths: Mapping[str, int]
    ) -> dict[str, Tensor]:
        """Ids, (T, C), of as many tokens as asked for, with rows of zeros at the end."""
        tensors = {}
        for name, ids in tokens.items():
            given = list(ids)[: padding_lengths[name]]
            tensors[name] = torch.zeros(padding_lengths[name], ELMoCharacterMapper.max_word_length, dtype=torch.long)
            if given:
                tensors[name][: len(given)] = torch.tensor(given)
        return tensors
