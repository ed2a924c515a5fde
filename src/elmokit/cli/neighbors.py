"""`elmokit neighbors`: the nearest words, and the nearest occurrences; and what `index search` shares with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import CorpusOptions, Count
from elmokit.cli.output import print_json, shown
from elmokit.cli.progress import watched
from elmokit.errors import ConfigError

if TYPE_CHECKING:
    from elmokit.lexicon.neighbors import Neighbor
    from elmokit.text.brackets import BracketedWord
    from elmokit.text.tokenizers import Tokenizer

Query = Annotated[
    str,
    Parameter(
        name="WORD",
        allow_leading_hyphen=True,
        help="A word: its mean vector in the corpus is compared with those of other words. Or a sentence with the word "
        "in brackets, [ ] or 【 】: its vector there is compared with those of its occurrences in the corpus.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NeighborOptions:
    """What is compared with the word, and what is shown."""

    k: Count = 10
    min_count: int = 5
    """Words that occur less often are no neighbours of a word."""
    any_word: Annotated[bool, Parameter(negative="")] = False
    """Compare the word in the sentence with all words, not only with itself elsewhere."""
    token: str | None = None
    """Compare the word in the sentence with the occurrences of this word."""
    document: str | None = None
    """Compare the word in the sentence with occurrences in this document, named as the corpus was."""
    static: Path | None = None
    """A file of static vectors (word2vec, GloVe), whose neighbours are shown as well."""

    def read(self, query: str, tokenizer: "Tokenizer") -> "BracketedWord | None":
        """The word in its sentence; none if it stands alone."""
        from elmokit.text.brackets import has_brackets, read_brackets

        if has_brackets(query) or len(query.split()) > 1:
            return read_brackets(query, tokenizer)
        if self.any_word or self.token is not None or self.document is not None:
            options = "--any-word, --token and --document choose occurrences"
            raise ConfigError(f"{options}: put the word in a sentence, in brackets, as in 'the [{query}] of it'")
        return None

    @property
    def chosen(self) -> dict[str, Any]:
        """Which occurrences are compared with the word, and how many are sought."""
        return {"k": self.k, "any_word": self.any_word, "token": self.token, "document": self.document}

    def beside(self, word: str) -> "list[Neighbor] | None":
        """The neighbours of a word by the static vectors, if there are any."""
        from elmokit.lexicon.neighbors import word_neighbors
        from elmokit.static.files import read_vectors

        if self.static is None:
            return None
        vectors = read_vectors(self.static)
        return word_neighbors(word, vectors, k=self.k) if word in vectors.words else []

    def show(self, near: Sequence[Any], beside: "list[Neighbor] | None", *, json: bool, documents: bool) -> None:
        """Print words or occurrences, these with their documents if there are several, and static neighbours below."""
        if json:
            print_json({"neighbors": near} | ({} if beside is None else {"static": beside}))
            return
        for found, cosine in near:
            document = "" if isinstance(found, str) or not documents else f"  ({found.context.document})"
            print(f"{cosine:.3f}  {shown(found)}{document}")
        if beside is not None and self.static:
            print(f"\n{self.static.name}{'' if beside else ': the word is not in it'}")
        for other, cosine in beside or ():
            print(f"{cosine:.3f}  {other}")


def neighbors(query: Query, /, *, options: CorpusOptions, wanted: NeighborOptions = NeighborOptions()) -> None:
    """Find the nearest words to a word, or to a word in a sentence the nearest occurrences.

    Example: elmokit neighbors "He sat on the [bank] of the river" --corpus novel.txt

    What is computed is kept in the cache folder, so that the next question about the same corpus is quick.
    """
    from elmokit.lexicon.cache import CachedCorpus

    elmo, [corpus] = options.open(options.corpus)
    word = wanted.read(query, corpus.tokenizer)
    asked, beside = CachedCorpus(corpus, elmo, options.layers), wanted.beside(word.word if word else query)
    near: Sequence[Any]
    with watched(corpus.name) as progress:
        if word:
            near = asked.context_neighbors(word, **wanted.chosen, progress=progress)
        else:
            near = asked.word_neighbors(query, k=wanted.k, min_count=wanted.min_count, progress=progress)
    wanted.show(near, beside, json=options.json, documents=len(corpus.files) > 1)
