"""`elmokit index`: every word of a corpus where it stands, found by its meaning there."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from elmokit.cli.neighbors import NeighborOptions, Query
from elmokit.cli.options import TEXTS, Json, Source, StudyOptions, model_for
from elmokit.cli.output import check_output, print_json
from elmokit.cli.shards import ShardOptions, embedded_shards
from elmokit.errors import CheckpointError
from elmokit.progress import counted
from elmokit.progress.drawing import watched
from elmokit.translation import translate

index = App(name="index", help="Search a large corpus by meaning: build an index of all its words once, then ask it.")


@index.command
def build(
    *corpus: Annotated[Source, Parameter(name="CORPUS", help=TEXTS)],
    output: Annotated[Path, Parameter(alias="-o")],
    options: StudyOptions = StudyOptions(),
    parts: ShardOptions = ShardOptions(),
) -> None:
    """Give every occurrence of every word in a corpus its vector, in an index to be searched.

    Example: elmokit index build novels/ -o novels.index

    A build that was broken off goes on where it had come to when the same command is given again.

    Parameters
    ----------
    output
        The folder of the index.
    """
    from elmokit.lexicon.index import build_index, identify
    from elmokit.lexicon.index_tables import import_lancedb
    from elmokit.text.corpus import beginning
    from elmokit.text.documents import open_texts
    from elmokit.vector_shards import JoinedShards

    import_lancedb()
    parts.check(*corpus)
    files = open_texts(corpus, **options.files)
    name = model_for(options.model, beginning(files))
    elmo, [text] = replace(options, model=name).open(files, reproducible=True)
    path = Path(name).expanduser().resolve()
    model = identify(elmo, str(path) if path.exists() else name)
    try:
        with watched(text.name) as progress:
            reading: dict[str, Any] = {
                "layers": options.layers,
                "model": model,
                "tokenizer": options.over(elmo.config.tokenizer),
            }
            divided = {"layers": options.layers, "tokenizer": reading["tokenizer"]}
            shards = embedded_shards(parts, output, text, elmo, progress, **divided)
            if parts.shard:
                return
            source = JoinedShards(shards.paths, text.metadata) if shards else text
            found = build_index(source, elmo, output, progress=progress, **reading)
            if shards:
                shards.remove()
    except KeyboardInterrupt:
        print(translate(f"{output}: what is committed is kept; the same command goes on with it"), file=sys.stderr)
        raise
    if options.json:
        print_json({"occurrences": found.rows, "sentences": found.sentences}, indent=None)
    else:
        print(translate(f"{output}: {counted(found.rows, 'occurrence')} in {counted(found.sentences, 'sentence')}"))


@index.command
def search(
    folder: Annotated[Path, Parameter(name="DIR")],
    query: Query,
    /,
    *,
    wanted: NeighborOptions = NeighborOptions(),  # noqa: B008
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    json: Json = False,
) -> None:
    """Ask an index as `elmokit neighbors` asks a corpus: for the nearest words to a word, or the nearest occurrences.

    Example: elmokit index search novels.index "He sat on the [bank] of the river"

    Parameters
    ----------
    folder
        The folder of the index.
    model
        Where the model is that built the index, if it moved since.
    """
    from elmokit.elmo import load
    from elmokit.lexicon.index import identify, open_index, read_manifest
    from elmokit.text.tokenizers import get_tokenizer

    check_output(wanted.output)
    reading = read_manifest(folder).reading
    word = wanted.read(query, get_tokenizer(reading.tokenizer))
    near: Sequence[Any]
    if word:
        name = model or reading.model.name
        try:
            elmo = load(name)
        except CheckpointError as error:
            message = f"{error}. {folder} needs the model it was built by: --model says where it is"
            raise CheckpointError(message) from None
        near = open_index(folder, model=identify(elmo, name)).search_word(word, elmo, **wanted.chosen)
    else:
        near = open_index(folder).word_neighbors(query, **wanted.among)
    wanted.show(near, wanted.beside(word.word if word else query), json=json, documents=True)
