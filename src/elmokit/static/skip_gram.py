"""Skip-gram with negative sampling, trained by gensim."""

from collections.abc import Iterator
from typing import Any

from elmokit.errors import MissingExtraError
from elmokit.progress import SILENCE, Progress
from elmokit.static.corpus import Text
from elmokit.static.embedders import StaticVectors
from elmokit.static.settings import SkipGramSettings

LINES_PER_REPORT = 1000


def train_skip_gram(
    text: Text, settings: SkipGramSettings = SkipGramSettings(), *, progress: Progress = SILENCE
) -> StaticVectors:
    """Train on the text."""
    model = import_gensim().Word2Vec(
        vector_size=settings.dimensions,
        window=settings.window,
        negative=settings.negatives,
        sample=settings.subsampling,
        alpha=settings.learning_rate,
        epochs=settings.epochs,
        workers=settings.threads,
        seed=settings.seed,
        sg=1,
        min_count=1,  # rare words are left out of the text already
        sorted_vocab=0,  # its words are in order already
    )
    model.build_vocab_from_freq(dict(zip(text.words, text.counts.tolist(), strict=True)))
    model.train(
        _Sentences(text, settings.epochs, progress),
        total_examples=int((text.ids < 0).sum()),
        total_words=text.tokens,
        epochs=settings.epochs,
    )
    return StaticVectors(text.words, model.wv.vectors)


def import_gensim() -> Any:
    """gensim's models; an error says how to install it."""
    try:
        from gensim import models
    except ImportError:
        raise MissingExtraError("skip-gram needs gensim", "static") from None
    return models


class _Sentences:
    """The sentences of a text, as often as gensim asks for them."""

    def __init__(self, text: Text, epochs: int, progress: Progress) -> None:
        self.text, self.tokens, self.epochs, self.progress = text, text.tokens, epochs, progress
        self.done = 0

    def __iter__(self) -> Iterator[list[str]]:
        for number, sentence in enumerate(self.text.sentences()):
            yield sentence
            self.done += len(sentence)
            if number % LINES_PER_REPORT == 0 or self.done % self.tokens == 0:
                self.progress.update("training", self.done, self.epochs * self.tokens, unit="words")
