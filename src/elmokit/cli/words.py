"""`elmokit substitutes` and `surprisal`: what a language model expects."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from elmokit.cli.options import Bracketed, Count, ModelOptions, TextOptions
from elmokit.cli.output import print_json
from elmokit.cli.progress import watched
from elmokit.errors import ConfigError
from elmokit.lexicon.settings import Direction


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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SurprisalOptions(ModelOptions, TextOptions):
    """Which model reads a sentence or files, and how."""


def surprisal(
    *texts: Annotated[str, Parameter(name="SENTENCE or FILES", allow_leading_hyphen=True)],
    options: SurprisalOptions = SurprisalOptions(),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
) -> None:
    """Measure how surprising each word of a sentence or of files is to a language model, in bits; it needs its softmax.

    Example: elmokit surprisal "He sat on the bank of the river ."

    Example: elmokit surprisal novel.txt -o novel.csv

    Parameters
    ----------
    texts
        A sentence, in quotes. With --output, texts: .txt or .jsonl, plain or packed, folders of them, or - for standard
        input.
    output
        Where the table of the words of files goes: .csv, .tsv or .parquet. With it the arguments are files, without it
        a sentence.
    """
    if output and texts:
        _write_table(texts, output, options)
        return
    sentence = _one_sentence(texts)

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


def _one_sentence(texts: Sequence[str]) -> str:
    """The only argument, which must not be the name of a file."""
    table = "-o table.csv (.tsv, .parquet) says where the table of its words goes"
    if len(texts) != 1:
        raise ConfigError(f"{len(texts)} arguments: give one sentence, in quotes; of files, {table}")
    with suppress(OSError):  # such as a name that is too long for a file's
        if texts[0] == "-" or Path(texts[0]).exists():
            raise ConfigError(f"{texts[0]} is a file or folder: {table}; as a sentence, end it with a blank")
    return texts[0]


def _write_table(texts: Sequence[str], output: Path, options: SurprisalOptions) -> None:
    """The surprisal of every word of the files."""
    from elmokit.lexicon.surprisal_tables import write_surprisal
    from elmokit.lexicon.tables import check_table
    from elmokit.text.corpus import beginning, open_corpus
    from elmokit.text.documents import open_texts

    check_table(output)
    files = open_texts(texts, **options.files, repeatable=False)
    elmo, tokenizer = options.load(beginning(files))
    corpus = open_corpus(files, tokenizer, language=options.language, keep_empty=options.meaning == "sentences")
    with watched(corpus.name) as progress:
        found = write_surprisal(output, corpus, elmo, progress=progress)
    if options.json:
        print_json(found, indent=None)
    else:
        print(f"{output}: {found.words:,} words, {found.unknown:,} of them not in the model's vocabulary")
