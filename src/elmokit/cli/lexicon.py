"""`elmokit neighbors`, `senses`, `substitutes`, `surprisal` and `shift`: one word, many vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from elmokit.cli.study import Files, ModelOptions, SenseOptions, StudyOptions, meter, print_json, shown

if TYPE_CHECKING:
    from elmokit.lexicon.neighbors import NearOccurrence, Neighbor


def neighbors(
    query: Annotated[str, Parameter(name="WORD", allow_leading_hyphen=True)],
    /,
    *,
    corpus: Files,
    options: StudyOptions,
    k: Annotated[int, Parameter(name=["-k", "--count"])] = 10,
    min_count: int = 5,
    any_word: Annotated[bool, Parameter(negative="")] = False,
    static: Path | None = None,
) -> None:
    """Find the nearest words to a word, or to a word in a sentence the nearest occurrences.

    Example: elmokit neighbors "He sat on the [bank] of the river" --corpus novel.txt --model MODEL

    Parameters
    ----------
    query
        A word: its mean vector in the corpus is compared with those of other words. Or a sentence with the word in
        brackets, [ ] or 【 】: its vector there is compared with those of its occurrences in the corpus.
    corpus
        A file (.txt, .jsonl, plain or .gz or .xz) or a folder of them. May be repeated.
    options
        Which model reads, and how.
    k
        Neighbours shown.
    min_count
        Words that occur less often are no neighbours.
    any_word
        Compare the word in the sentence with all words, not only with itself elsewhere.
    static
        A file of static vectors (word2vec, GloVe), whose neighbours are shown as well.
    """
    from elmokit.lexicon.neighbors import context_neighbors, word_neighbors
    from elmokit.lexicon.occurrences import type_vectors
    from elmokit.text.brackets import has_brackets, read_brackets

    elmo, tokenizer = options.load()
    text = options.open(corpus, tokenizer)
    mark = read_brackets(query, tokenizer) if has_brackets(query) or len(query.split()) > 1 else None
    beside = _static_neighbors(static, mark.word if mark else query, k)
    near: Sequence[Neighbor | NearOccurrence]
    with meter() as progress:
        if mark:
            near = context_neighbors(mark, text, elmo, k=k, any_word=any_word, layers=options.layers, progress=progress)
        else:
            types = type_vectors(
                text, elmo, layers=options.layers, min_count=min_count, also=[query], progress=progress
            )
            near = word_neighbors(query, types, k=k)
    if options.json:
        print_json({"neighbors": near} | ({"static": beside} if static else {}))
        return
    for neighbor in near:
        print(f"{neighbor.cosine:.3f}  {shown(neighbor[0])}")
    if static:
        print(f"\n{static.name}{'' if beside else ': the word is not in it'}")
    for word, cosine in beside:
        print(f"{cosine:.3f}  {word}")


def senses(
    word: str,
    /,
    *,
    corpus: Files,
    options: SenseOptions,
    count: int | None = None,
    most: int = 5,
    limit: int = 1000,
    examples: int = 3,
    plot: Annotated[list[Path] | None, Parameter(negative="")] = None,
    by: Literal["around", "word"] = "around",
    seed: int = 0,
) -> None:
    """Group the occurrences of a word into senses.

    Example: elmokit senses bank --corpus novel.txt --model MODEL --plot bank.html

    Parameters
    ----------
    word
        A word of the corpus.
    corpus
        A file (.txt, .jsonl, plain or .gz or .xz) or a folder of them. May be repeated.
    options
        Which model reads, and how.
    count
        Senses; as many as stand apart best unless given.
    most
        The most senses that are tried.
    limit
        Occurrences grouped; of more, so many are drawn evenly from the corpus.
    examples
        Sentences shown of each sense.
    plot
        A scatter plot, .png or .html. May be repeated.
    by
        Compare what the words around lead to expect in its place, which tells senses apart best, or its own vectors.
    seed
        Draws and groupings are a function of it.
    """
    from elmokit.lexicon.plots import check_plot, write_plot
    from elmokit.lexicon.senses import SenseSettings, find_senses
    from elmokit.lexicon.surroundings import Surroundings

    for path in plot or []:
        check_plot(path)
    elmo, tokenizer = options.load()
    settings = SenseSettings(count=count, most=most, examples=examples)
    with meter() as progress:
        found = find_senses(
            word,
            options.open(corpus, tokenizer),
            Surroundings(elmo) if by == "around" else elmo,
            settings=settings,
            layers=options.layers,
            limit=limit,
            seed=seed,
            progress=progress,
        )
    for path in plot or []:
        write_plot(path, found)
    if options.json:
        print_json(found)
        return
    apart = "" if found.silhouette is None else f", silhouette {found.silhouette:.2f}"
    number = "1 sense" if len(found.senses) == 1 else f"{len(found.senses)} senses"
    print(f"{word}: {number} in {len(found.occurrences):,} occurrences{apart}")
    for place, sense in enumerate(found.senses, 1):
        print(f"\n{place}  {sense.share:.0%}  {', '.join(telling.word for telling in sense.words)}")
        for example in sense.examples:
            print(f"   {shown(example)}")


def substitutes(
    sentence: Annotated[str, Parameter(name="SENTENCE", allow_leading_hyphen=True)],
    /,
    *,
    options: ModelOptions,
    k: Annotated[int, Parameter(name=["-k", "--count"])] = 10,
    direction: Literal["forward", "backward", "both"] = "both",
) -> None:
    """Show what the language model would put in the place of a word.

    Example: elmokit substitutes "He sat on the [bank] of the river" --model MODEL

    Parameters
    ----------
    sentence
        A sentence with a word in brackets, [ ] or 【 】.
    options
        Which model reads, and how; it needs its softmax.
    k
        Words shown.
    direction
        Judge by the words before (forward), after (backward) or both.
    """
    from elmokit.lexicon.substitutes import substitutes as find
    from elmokit.text.brackets import read_brackets

    elmo, tokenizer = options.load()
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
    sentence: Annotated[str, Parameter(name="SENTENCE", allow_leading_hyphen=True)], /, *, options: ModelOptions
) -> None:
    """Show how surprising each word of a sentence is to a language model, in bits.

    Example: elmokit surprisal "He sat on the bank of the river ." --model MODEL

    Parameters
    ----------
    sentence
        A sentence.
    options
        Which model reads, and how; it needs its softmax.
    """
    from elmokit.lexicon.substitutes import surprisal as measure

    elmo, tokenizer = options.load()
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
    first: Annotated[Path, Parameter(name="FIRST")],
    second: Annotated[Path, Parameter(name="SECOND")],
    /,
    *,
    options: StudyOptions,
    words: Annotated[list[str] | None, Parameter(negative="")] = None,
    by: Literal["apd", "prt"] = "apd",
    k: Annotated[int, Parameter(name=["-k", "--count"])] = 20,
    min_count: int = 20,
    limit: int = 500,
    examples: int = 2,
    seed: int = 0,
) -> None:
    """Find the words whose use differs most between two corpora.

    Example: elmokit shift old/ new/ --model MODEL

    Parameters
    ----------
    first
        A file (.txt, .jsonl, plain or .gz or .xz) or a folder of them.
    second
        Another.
    options
        Which model reads, and how.
    words
        Compare these alone. May be repeated.
    by
        Rank by the average pairwise distance (apd) or the distance of the means (prt).
    k
        Words shown.
    min_count
        Occurrences that a word must have in either corpus.
    limit
        Occurrences of a word that are compared; of more, so many are drawn evenly from each corpus.
    examples
        Sentences shown of each corpus: those farthest from the other.
    seed
        Draws are a function of it.
    """
    from elmokit.lexicon.shift import ShiftSettings, find_shift

    elmo, tokenizer = options.load()
    settings = ShiftSettings(by=by, min_count=min_count, k=k, examples=examples, limit=limit)
    with meter() as progress:
        changes = find_shift(
            options.open([first], tokenizer),
            options.open([second], tokenizer),
            elmo,
            words=words or (),
            settings=settings,
            layers=options.layers,
            seed=seed,
            progress=progress,
        )
    if options.json:
        print_json(changes)
        return
    print("  APD    PRT  word")
    for change in changes:
        print(f"{change.apd:.3f}  {change.prt:.3f}  {change.word}  ({change.counts[0]:,} and {change.counts[1]:,})")
        for corpus, side in zip((first, second), change.examples, strict=True):
            for example in side:
                print(f"              {corpus.name}: {shown(example)}")


def _static_neighbors(path: Path | None, word: str, k: int) -> "list[Neighbor]":
    """The neighbours by a file of static vectors; none where it lacks the word."""
    if path is None:
        return []

    from elmokit.lexicon.neighbors import word_neighbors
    from elmokit.static.files import read_vectors

    vectors = read_vectors(path)
    return word_neighbors(word, vectors, k=k) if word in vectors.words else []
