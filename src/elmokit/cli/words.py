"""`elmokit neighbors`, `senses`, `substitutes`, `surprisal` and `shift`: one word, many vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import (
    TEXTS,
    Bracketed,
    CorpusOptions,
    Count,
    ModelOptions,
    Seed,
    SenseOptions,
    Source,
    StudyOptions,
)
from elmokit.cli.output import print_json, shown
from elmokit.cli.progress import watched
from elmokit.lexicon.settings import Direction, SenseSettings, ShiftSettings
from elmokit.progress import counted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ShiftOptions(ShiftSettings):
    """What is compared and shown."""

    k: Count = 20


def neighbors(
    query: Annotated[str, Parameter(name="WORD", allow_leading_hyphen=True)],
    /,
    *,
    options: CorpusOptions,
    k: Count = 10,
    min_count: int = 5,
    any_word: Annotated[bool, Parameter(negative="")] = False,
    static: Path | None = None,
) -> None:
    """Find the nearest words to a word, or to a word in a sentence the nearest occurrences.

    Example: elmokit neighbors "He sat on the [bank] of the river" --corpus novel.txt

    Parameters
    ----------
    query
        A word: its mean vector in the corpus is compared with those of other words. Or a sentence with the word in
        brackets, [ ] or 【 】: its vector there is compared with those of its occurrences in the corpus.
    min_count
        Words that occur less often are no neighbours.
    any_word
        Compare the word in the sentence with all words, not only with itself elsewhere.
    static
        A file of static vectors (word2vec, GloVe), whose neighbours are shown as well.
    """
    from elmokit.lexicon.neighbors import context_neighbors, word_neighbors
    from elmokit.lexicon.occurrences import type_vectors
    from elmokit.static.files import read_vectors
    from elmokit.text.brackets import has_brackets, read_brackets

    (elmo, [corpus]), layers = options.open(options.corpus), options.layers
    word = read_brackets(query, corpus.tokenizer) if has_brackets(query) or len(query.split()) > 1 else None
    alone, vectors = word.word if word else query, read_vectors(static) if static else None
    beside = word_neighbors(alone, vectors, k=k) if vectors is not None and alone in vectors.words else []
    near: Sequence[Any]
    with watched(corpus.name) as progress:
        if word:
            near = context_neighbors(word, corpus, elmo, k=k, any_word=any_word, layers=layers, progress=progress)
        else:
            types = type_vectors(
                corpus, elmo, layers=options.layers, min_count=min_count, also=[query], progress=progress
            )
            near = word_neighbors(query, types, k=k)
    if options.json:
        print_json({"neighbors": near} | ({"static": beside} if static else {}))
        return
    for neighbor in near:
        print(f"{neighbor.cosine:.3f}  {shown(neighbor[0])}")
    if static:
        print(f"\n{static.name}{'' if beside else ': the word is not in it'}")
    for other, cosine in beside:
        print(f"{cosine:.3f}  {other}")


def senses(
    word: str,
    /,
    *,
    options: SenseOptions,
    settings: Annotated[SenseSettings, Parameter(name="*")] = SenseSettings(),  # noqa: B008
    limit: int = 1000,
    plot: list[Path] | None = None,
    by: Literal["around", "word"] = "around",
    seed: Seed = 0,
) -> None:
    """Group the occurrences of a word into senses.

    Example: elmokit senses bank --corpus novel.txt --plot bank.html

    Parameters
    ----------
    word
        A word of the corpus.
    limit
        Occurrences grouped; of more, so many are drawn evenly from the corpus.
    plot
        A scatter plot, .png or .html. May be repeated.
    by
        Compare what the words around lead to expect in its place, which tells senses apart best, or its own vectors.
    """
    from elmokit.lexicon.plots import check_plot, write_plot
    from elmokit.lexicon.senses import Surroundings, find_senses

    for path in plot or []:
        check_plot(path)
    elmo, [corpus] = options.open(options.corpus)
    embedder = Surroundings(elmo) if by == "around" else elmo
    with watched(corpus.name) as progress:
        reading: dict[str, Any] = {"layers": options.layers, "limit": limit, "seed": seed, "progress": progress}
        found = find_senses(word, corpus, embedder, settings=settings, **reading)
    for path in plot or []:
        write_plot(path, found)
    if options.json:
        print_json(found)
        return
    apart = "" if found.silhouette is None else f", silhouette {found.silhouette:.2f}"
    number, among = counted(len(found.senses), "sense"), counted(len(found.occurrences), "occurrence")
    print(f"{word}: {number} in {among}{apart}")
    for rank, sense in enumerate(found.senses, 1):
        print(f"\n{rank}  {sense.share:.0%}  {', '.join(keyword.word for keyword in sense.words)}")
        for example in sense.examples:
            print(f"   {shown(example)}")


def substitutes(
    sentence: Bracketed, /, *, options: ModelOptions = ModelOptions(), k: Count = 10, direction: Direction = "both"
) -> None:
    """Show what the language model would put in the place of a word; it needs its softmax.

    Example: elmokit substitutes "He sat on the [bank] of the river"

    Parameters
    ----------
    direction
        Judge by the words before (forward), after (backward) or both.
    """
    from elmokit.lexicon.predictions import substitutes as find
    from elmokit.text.brackets import read_brackets

    elmo, tokenizer = options.load(sentence)
    found = find(elmo, read_brackets(sentence, tokenizer), k=k, direction=direction)
    if options.json:
        print_json(found)
        return
    if found.rank is None:
        print(f"{found.word}: not in the model's vocabulary")
    else:
        print(f"{found.word}: rank {found.rank:,} of {len(elmo.vocabulary or ()):,}, {found.probability:.2%}")
    for word, probability in found.candidates:
        print(f"{probability:7.2%}  {word}")


def surprisal(
    sentence: Annotated[str, Parameter(name="SENTENCE", allow_leading_hyphen=True)],
    /,
    *,
    options: ModelOptions = ModelOptions(),
) -> None:
    """Show how surprising each word of a sentence is to a language model, in bits; it needs its softmax.

    Example: elmokit surprisal "He sat on the bank of the river ."
    """
    from elmokit.lexicon.predictions import surprisal as measure

    elmo, tokenizer = options.load(sentence)
    found = measure(elmo, [token.text for token in tokenizer(sentence)])
    if options.json:
        print_json(found)
        return
    print("forward  backward  bits")
    print(f"         {found.begin:8.2f}  (begin)")
    for word, forward, backward, known in found.words:
        print(f"{forward:7.2f}  {backward:8.2f}  {word}{'' if known else '  (as <UNK>)'}")
    print(f"{found.end:7.2f}            (end)")


def shift(
    first: Annotated[Source, Parameter(name="FIRST", help=TEXTS)],
    second: Annotated[Source, Parameter(name="SECOND", help="Another text or folder.")],
    /,
    *,
    options: StudyOptions = StudyOptions(),
    settings: ShiftOptions = ShiftOptions(),
    words: list[str] | None = None,
    seed: Seed = 0,
) -> None:
    """Find the words whose use differs most between two corpora.

    Example: elmokit shift old/ new/

    Parameters
    ----------
    words
        Compare these alone. May be repeated.
    """
    from elmokit.lexicon.shift import find_shift

    elmo, [early, late] = options.open([first], [second])
    with watched(f"{early.name} and {late.name}") as progress:
        reading: dict[str, Any] = {"layers": options.layers, "seed": seed, "progress": progress}
        changes = find_shift(early, late, elmo, words=words or (), settings=settings, **reading)
    if options.json:
        print_json(changes)
        return
    print("  APD    PRT  word")
    for change in changes:
        print(f"{change.apd:.3f}  {change.prt:.3f}  {change.word}  ({change.counts[0]:,} and {change.counts[1]:,})")
        for corpus, side in zip((first, second), change.examples, strict=True):
            for example in side:
                print(f"              {corpus.name}: {shown(example)}")
