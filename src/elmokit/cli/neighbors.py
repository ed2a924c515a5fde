"""`elmokit neighbors` and `similarity`: the nearest words and occurrences; what `index search` shares with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import CorpusOptions, Count, ModelOptions
from elmokit.cli.output import check_output, print_json, shown
from elmokit.errors import ConfigError
from elmokit.progress.drawing import watched
from elmokit.translation import translate

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
    center: bool = False
    """Compare the mean vectors of words less the mean of all, so that what is in each of them does not count."""
    output: Annotated[Path | None, Parameter(alias="-o")] = None
    """A table of them: .csv, .tsv or .parquet."""
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

    @property
    def among(self) -> dict[str, Any]:
        """Which words are compared with a word, how, and how many are sought."""
        return {"k": self.k, "min_count": self.min_count, "center": self.center}

    def beside(self, word: str) -> "list[Neighbor] | None":
        """The neighbours of a word by the static vectors, if there are any."""
        from elmokit.lexicon.neighbors import word_neighbors
        from elmokit.static.files import read_vectors

        if self.static is None:
            return None
        vectors = read_vectors(self.static)
        chosen = word if word in vectors.words else word.lower()
        return word_neighbors(chosen, vectors, k=self.k) if chosen in vectors.words else []

    def show(self, near: Sequence[Any], beside: "list[Neighbor] | None", *, json: bool, documents: bool) -> None:
        """Print words or occurrences, these with their documents if there are several, and static neighbours below."""
        if self.output is not None:
            self._write(self.output, near, beside)
        if json:
            print_json({"neighbors": near} | ({} if beside is None else {"static": beside}))
            return
        for found, cosine in near:
            document = "" if isinstance(found, str) or not documents else f"  ({_source(found)})"
            print(f"{cosine:.3f}  {shown(found)}{document}")
        if beside is not None and self.static:
            print(f"\n{self.static.name}{'' if beside else translate(': the word is not in it')}")
        for other, cosine in beside or ():
            print(f"{cosine:.3f}  {other}")

    def _write(self, path: Path, near: Sequence[Any], beside: "list[Neighbor] | None") -> None:
        """A row for each; of words also those by static vectors, with a column that says by which."""
        from elmokit.lexicon.tables import table_row, write_table

        rows = [table_row(one) for one in near]
        if beside is not None and all(isinstance(found, str) for found, _ in near):
            kinds = (("contextual", near), ("static", beside))
            rows = [table_row(one, vectors=kind) for kind, some in kinds for one in some]
        write_table(path, rows, columns=("word", "cosine"))


def _source(found: Any) -> str:
    """The document of an occurrence, and what is known of it."""
    return "; ".join([found.context.document, *found.context.metadata.values()])


def neighbors(query: Query, /, *, options: CorpusOptions, wanted: NeighborOptions = NeighborOptions()) -> None:
    """Find the nearest words to a word, or to a word in a sentence the nearest occurrences.

    Example: elmokit neighbors "He sat on the [bank] of the river" --corpus novel.txt

    What is computed is kept in the cache folder, so that the next question about the same corpus is quick.
    """
    from elmokit.lexicon.cache import CachedCorpus

    check_output(wanted.output)
    elmo, [corpus] = options.open(options.corpus)
    word = wanted.read(query, corpus.tokenizer)
    asked, beside = CachedCorpus(corpus, elmo, options.layers), wanted.beside(word.word if word else query)
    near: Sequence[Any]
    with watched(corpus.name) as progress:
        if word:
            near = asked.context_neighbors(word, **wanted.chosen, progress=progress)
        else:
            near = asked.word_neighbors(query, **wanted.among, progress=progress)
    wanted.show(near, beside, json=options.json, documents=len(corpus.files) > 1 or corpus.metadata is not None)


def similarity(
    one: Annotated[str, Parameter(name="ONE", allow_leading_hyphen=True)],
    other: Annotated[str, Parameter(name="OTHER", allow_leading_hyphen=True)],
    /,
    *,
    options: ModelOptions = ModelOptions(),
    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "average",
    static: Path | None = None,
) -> None:
    """Compare a word in two sentences, each in brackets, or two sentences: the cosine of their vectors.

    Example: elmokit similarity "He sat on the [bank] of the river" "The [bank] raised its rates"

    Parameters
    ----------
    one
        A sentence, with a word in brackets, [ ] or 【 】, if the word is to be compared.
    other
        Another.
    layer
        average, top, or a layer's number; 0 is the context-free token vector.
    static
        A file of static vectors (word2vec, GloVe), by which they are compared as well: a word is the same everywhere.
    """
    from elmokit.lexicon.neighbors import static_similarity
    from elmokit.static import load

    elmo, _ = options.load(f"{one} {other}")
    layers: Any = int(layer) if layer.isdecimal() else layer
    found: dict[str, float | None] = {"similarity": elmo.similarity(one, other, layers=layers)}
    if static:
        found["static"] = static_similarity(one, other, load(static, lower_case=True), elmo.tokenizer)
    if options.json:
        print_json(found)
        return
    for name, cosine in found.items():
        value = translate("none has a vector") if cosine is None else f"{cosine:.3f}"
        by = translate("by the model") if name == "similarity" else translate("by {file}").format(file=static)
        print(f"{value}  {by}")
