"""`elmokit embed`: text in, vectors out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import MODEL, AllowNonfinite, Source, TextOptions, TokenOptions, model_for
from elmokit.cli.shards import ShardOptions, embedded_shards
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.embedder import Layers


def embed(
    source: Annotated[Source, Parameter(name="INPUT")],
    /,
    *more: Annotated[Source, Parameter(name="MORE")],
    output: Annotated[Path, Parameter(alias="-o")],
    model: Annotated[str | None, Parameter(alias="-m", help=MODEL)] = None,
    layers: str = "average",
    text: TextOptions = TextOptions(),
    tokens: TokenOptions = TokenOptions(),
    precision: Literal["fp32", "int8"] = "fp32",
    batch_tokens: int = 4096,
    device: str = "cpu",
    allow_nonfinite: AllowNonfinite = False,
    parts: ShardOptions = ShardOptions(),
) -> None:
    """Give every token of a text its contextual vector.

    Example: elmokit embed novel.txt -o vectors.h5

    Parameters
    ----------
    source
        A file (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst) or a folder of them, or - for standard input.
    more
        More of them; the sentences of all go to one file, in this order.
    output
        Where the vectors go: .h5 (AllenNLP's layout), .npz, .safetensors or .parquet.
    layers
        average, top, all, or a layer's number; 0 is the context-free token vector.
    precision
        fp32, or int8: faster on large models, for nearly the same vectors.
    batch_tokens
        Tokens computed at a time; more is faster up to a point and takes more memory.
    device
        Where to compute: cpu, or cuda where there is a GPU.
    """
    from elmokit.vectors import check_output

    check_output(output)
    parts.check(source, *more)

    from elmokit.elmo import load
    from elmokit.progress import counted, tracked
    from elmokit.progress.drawing import watched
    from elmokit.text.corpus import beginning, open_corpus
    from elmokit.text.documents import open_texts
    from elmokit.text.tokenizers import get_tokenizer
    from elmokit.vector_shards import JoinedShards, embed_corpus
    from elmokit.vectors import write_vectors

    files = open_texts([source, *more], **text.files, repeatable=False)
    computing: dict[str, Any] = {"precision": precision, "device": device, "batch_tokens": batch_tokens}
    chosen = model_for(model, beginning(files))
    elmo = load(chosen, **computing, reproducible=True, allow_nonfinite=allow_nonfinite)
    wanted: Layers = int(layers) if layers.isdecimal() else layers  # type: ignore[assignment]
    elmo.embed([], layers=wanted)  # says at once if there are no such layers
    tokenization = tokens.over(elmo.config.tokenizer)
    keep_empty = text.meaning == "sentences"
    corpus = open_corpus(files, get_tokenizer(tokenization), language=text.language, keep_empty=keep_empty)
    with watched(corpus.name) as progress:
        shards = embedded_shards(parts, output, corpus, elmo, progress, layers=wanted, tokenizer=tokenization)
        if parts.shard:
            return
        if shards:
            count = write_vectors(output, JoinedShards(shards.paths, allow_nonfinite=allow_nonfinite))
            shards.remove()
        else:
            sentences = tracked(corpus.numbered(), progress, "embedding", unit="sentences")
            count = write_vectors(output, (one for _, one in embed_corpus(elmo, sentences, wanted)))
    print(translate(f"{output}: {counted(count, 'sentence')}"))
