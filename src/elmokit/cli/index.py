"""`elmokit index`: every word of a corpus where it stands, found by its meaning there."""

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from elmokit.cli.study import LONGEST_SHOWN, StudyOptions, meter
from elmokit.errors import CheckpointError

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.lexicon.neighbors import NearOccurrence

index = App(name="index", help="Search a large corpus by meaning: build an index of all its words once, then ask it.")


@index.command
def build(
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    options: StudyOptions,
) -> None:
    """Give every occurrence of every word in a corpus its vector, in an index to be searched.

    Example: elmokit index build novels/ --model MODEL -o novels.index

    A build that was broken off goes on where it had come to when the same command is given again.

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them.
    output
        The folder of the index.
    options
        Which model reads, and how.
    """
    from elmokit.lexicon.index import build_index
    from elmokit.lexicon.index_manifest import Reading, identify
    from elmokit.lexicon.index_tables import import_lancedb

    import_lancedb()
    elmo, tokenizer = options.load()
    place = Path(options.model).expanduser().resolve()
    reading = Reading(
        identify(elmo, str(place) if place.exists() else options.model),
        options.layers,
        options.tokenizer or elmo.config.tokenizer,
    )
    text = options.open(corpus, tokenizer)
    try:
        with meter() as progress:
            found = build_index(text, elmo, output, reading=reading, progress=progress)
    except KeyboardInterrupt:
        print(f"{output}: what is committed is kept; the same command goes on with it", file=sys.stderr)
        raise
    if options.json:
        print(json_format.dumps({"occurrences": found.rows, "sentences": found.sentences}))
    else:
        print(f"{output}: {found.rows:,} occurrences in {found.sentences:,} sentences")


@index.command
def search(
    folder: Annotated[Path, Parameter(name="DIR")],
    sentence: Annotated[str, Parameter(name="SENTENCE", allow_leading_hyphen=True)],
    /,
    *,
    k: Annotated[int, Parameter(name=["-k", "--count"])] = 10,
    token: str | None = None,
    document: str | None = None,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Find the occurrences nearest in meaning to a word in a sentence.

    Example: elmokit index search novels.index "He sat on the [bank] of the river"

    Parameters
    ----------
    folder
        The folder of the index.
    sentence
        A sentence with a word in brackets, [ ] or 【 】.
    k
        Occurrences shown.
    token
        Seek among the occurrences of this word alone.
    document
        Seek in this document alone; it is named as the corpus was when the index was built.
    model
        Where the model is that built the index, if it moved since.
    json
        Print JSON.
    """
    from elmokit.lexicon.index import open_index
    from elmokit.lexicon.index_manifest import identify, read_manifest
    from elmokit.text.brackets import read_brackets
    from elmokit.text.tokenizers import get_tokenizer

    reading = read_manifest(folder).reading
    query = read_brackets(sentence, get_tokenizer(reading.tokenizer))
    name = model or reading.model.name
    elmo = _load(name, folder)
    found = open_index(folder, model=identify(elmo, name)).search_word(query, elmo, k=k, token=token, document=document)
    if json:
        print(json_format.dumps([_plain(near) for near in found], ensure_ascii=False, indent=2))
        return
    for (context, position, _), cosine in found:
        print(f"{cosine:.3f}  {context.bracketed(position, reach=LONGEST_SHOWN)}  ({context.document})")


def _load(name: str, folder: Path) -> "Elmo":
    from elmokit.elmo import load

    try:
        return load(name)
    except CheckpointError as error:
        raise CheckpointError(f"{error}. {folder} needs the model it was built by: --model says where it is") from None


def _plain(near: "NearOccurrence") -> dict[str, object]:
    found = near.occurrence
    place = {"position": found.position, "document": found.context.document}
    return {"cosine": near.cosine, "token": found.token, "sentence": found.context.text} | place
