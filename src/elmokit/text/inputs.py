"""What users pass for sentences: checked, tokenized, put into batches, and the results back in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import Any, TypeVar

from elmokit.errors import ConfigError, DataError
from elmokit.text.tokenizers import Tokenizer

T = TypeVar("T")
SizedT = TypeVar("SizedT", bound=Sized)
SHOWN_COLUMNS = 5


def tokenized(sentences: Iterable[Any], tokenizer: Tokenizer) -> Iterator[list[str]]:
    """The tokens of each sentence: a str is split by the tokenizer, a list of tokens stays as it is.

    A str in place of the list is one sentence.
    """
    given = [sentences] if isinstance(sentences, str) else sentences
    if isinstance(given, bytes | bytearray | Mapping) or not (hasattr(given, "__iter__") or hasattr(given, "__len__")):
        raise DataError(
            f"sentences came as {type(given).__name__}: pass a list of sentences, each a str or a list of tokens"
        )
    if hasattr(given, "columns"):
        names = ", ".join(map(repr, list(given.columns)[:SHOWN_COLUMNS]))
        raise DataError(f"sentences came as a table: pass one of its columns ({names}), as in table[name]")
    return (_tokens(sentence, number, tokenizer) for number, sentence in enumerate(given))


def looks_flat(sentences: Iterable[Any], tokenizer: Tokenizer) -> bool:
    """Whether a list of words seems to have been passed for a list of sentences."""
    if not isinstance(sentences, list | tuple) or len(sentences) < 2:
        return False
    return all(isinstance(item, str) and len(tokenizer(item)) == 1 for item in sentences)


def in_chunks(
    sentences: Iterable[SizedT], tokens: int, *, length: Callable[[SizedT], int] = len
) -> Iterator[list[SizedT]]:
    """Consecutive sentences of about so many tokens in all."""
    chunk: list[SizedT] = []
    size = 0
    for sentence in sentences:
        chunk.append(sentence)
        size += length(sentence) + 1
        if size >= tokens:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def batch_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices by falling length, in batches of at most `budget` tokens; a longer item stands alone."""
    if budget < 1:
        raise ConfigError(f"the batch budget is {budget} tokens: it must be at least 1")
    batches: list[list[int]] = []
    room = -1
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or lengths[index] > room:
            batches.append([])
            room = budget
        batches[-1].append(index)
        room -= lengths[index]
    return batches


def in_original_order(batches: list[list[int]], results: Iterable[Sequence[T]]) -> list[T]:
    """The results of each batch, put where their items stood before batching."""
    by_index = dict(zip(chain.from_iterable(batches), chain.from_iterable(results), strict=True))
    return [by_index[index] for index in range(len(by_index))]


def _tokens(sentence: Any, number: int, tokenizer: Tokenizer) -> list[str]:
    if isinstance(sentence, str):
        return [token.text for token in tokenizer(sentence)]
    if (not isinstance(sentence, Sequence) and not hasattr(sentence, "__array__")) or isinstance(sentence, bytes):
        raise DataError(f"sentence {number} is {sentence!r}: expected a str or a list of tokens")
    for position, token in enumerate(sentence):
        if not isinstance(token, str):
            raise DataError(f"token {position} of sentence {number} is {token!r}: expected a str")
    return list(sentence)
