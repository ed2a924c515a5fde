"""`elmokit substitutes` and `surprisal`: what a language model expects of a sentence."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import METADATA, Bracketed, Count, ModelOptions, TextOptions
from elmokit.cli.output import check_output, print_json, write_rows
from elmokit.errors import ConfigError
from elmokit.lexicon.settings import Direction, Kept, View
from elmokit.progress import counted
from elmokit.progress.drawing import watched
from elmokit.translation import translate

TITLES = {"means-the-same": "what means the same", "fits": "what fits"}


def substitutes(
    sentence: Bracketed,
    /,
    *,
    options: ModelOptions = ModelOptions(),
    k: Count = 10,
    view: View = "means-the-same",
    direction: Direction = "both",
    keep: list[Kept] | None = None,
    among: list[str] | None = None,
    static: Path | None = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
) -> None:
    """Show what could stand in the place of a word: what means the same there, or all that fits; it needs its softmax.

    Example: elmokit substitutes "He sat on the [bank] of the river"

    Example: elmokit substitutes "He sat on the [bank] of the river" --view fits

    Parameters
    ----------
    view
        What means the same, judged by the word itself and the words around it; or what fits, by the words around alone.
    direction
        Judge by the words before (forward), after (backward) or both.
    keep
        Of what means the same the word itself, its inflections (English) and function words are left out; keep these.
        May be repeated.
    among
        Choose among these words alone. May be repeated.
    static
        A file of static vectors (word2vec, GloVe), which then say how like the word a candidate is.
    output
        A table of them: .csv, .tsv or .parquet.
    """
    from elmokit.lexicon.substitution import Substitute
    from elmokit.lexicon.substitution import substitutes as find
    from elmokit.static.files import read_vectors
    from elmokit.text.brackets import read_brackets

    check_output(output)
    elmo, tokenizer = options.load(sentence)
    vectors = read_vectors(static.expanduser()) if static else None
    wanted: dict[str, Any] = {"view": view, "direction": direction, "keep": keep, "among": among or ()}
    found = find(elmo, read_brackets(sentence, tokenizer), k=k, similar=vectors, **wanted)
    write_rows(output, found.candidates, columns=Substitute._fields)
    if options.json:
        print_json(found)
        return
    known = "not in the model's vocabulary"
    if found.rank is not None:
        known = f"rank {found.rank:,} of {len(elmo.vocabulary or ()):,}, {found.probability:.2%}"
    print(translate(f"{found.word}, {TITLES[view]}; the word itself: {known}"))
    for word, probability in found.candidates:
        print(f"{probability:7.2%}  {word}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SurprisalOptions(ModelOptions, TextOptions):
    """Which model reads a sentence or files, and how."""

    metadata: Annotated[Path | None, Parameter(help=METADATA)] = None


def surprisal(
    *texts: Annotated[str, Parameter(name="SENTENCE or FILES", allow_leading_hyphen=True)],
    options: SurprisalOptions = SurprisalOptions(),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    tokens: Path | None = None,
    word_column: str = "word",
    sentence_column: str = "sentence",
) -> None:
    """Measure how surprising each word of a sentence or of files is to a language model, in bits; it needs its softmax.

    Example: elmokit surprisal "He sat on the bank of the river ."

    Example: elmokit surprisal novel.txt -o novel.csv

    Example: elmokit surprisal --tokens reading-times.csv -o surprisal.csv

    Parameters
    ----------
    texts
        A sentence, in quotes. With --output, texts: .txt or .jsonl, plain or packed, folders of them, or - for standard
        input.
    output
        Where the table of the words of files goes: .csv, .tsv or .parquet. With it the arguments are files, without it
        a sentence.
    tokens
        Instead of texts a .csv or .tsv table with a word per row; all its columns are kept. A word that is several
        tokens of the model has the sum of their surprisals.
    word_column
        The column of that table with the words.
    sentence_column
        The column of that table that changes where a sentence ends.
    """
    if tokens:
        columns = {"word": word_column, "sentence": sentence_column}
        _align_table(texts, tokens, output, options, columns)
        return
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
    print(translate("forward (entropy)  backward (entropy)  bits"))
    print(f"{' ' * 19}{found.begin:8.2f}{' ' * 12}{translate('(begin)')}")
    for word, forward, backward, before, after, known in found.words:
        bits = f"{forward:7.2f}  ({before:6.2f})  {backward:8.2f}  ({after:6.2f})"
        print(f"{bits}  {word}  {'' if known else translate('(as <UNK>)')}".rstrip())
    print(f"{found.end:7.2f}{' ' * 32}{translate('(end)')}")


def _align_table(
    texts: Sequence[str], tokens: Path, output: Path | None, options: SurprisalOptions, columns: dict[str, str]
) -> None:
    """The surprisal of every word of a table."""
    from elmokit.lexicon.token_tables import write_aligned

    if texts or not output:
        raise ConfigError("--tokens takes the place of texts, and needs -o: where the new table goes")
    check_output(output)
    text = tokens.expanduser().read_text(encoding="utf-8", errors="replace") if tokens.expanduser().is_file() else ""
    elmo, tokenizer = options.load(text)
    with watched(str(tokens)) as progress:
        rows = write_aligned(output, tokens, elmo, tokenizer=tokenizer, progress=progress, **columns)
    if options.json:
        print_json({"rows": rows}, indent=None)
    else:
        print(translate(f"{output}: {counted(rows, 'row')}"))


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
    keep_empty = options.meaning == "sentences"
    reading: dict[str, Any] = {"language": options.language, "keep_empty": keep_empty, "metadata": options.metadata}
    corpus = open_corpus(files, tokenizer, **reading)
    with watched(corpus.name) as progress:
        found = write_surprisal(output, corpus, elmo, progress=progress)
    if options.json:
        print_json(found, indent=None)
    else:
        words, unknown = found.words, found.unknown
        print(translate(f"{output}: {words:,} words, {unknown:,} of them not in the model's vocabulary"))
