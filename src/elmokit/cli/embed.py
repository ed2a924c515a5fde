"""`elmokit embed`: text in, vectors out."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import MODEL, AllowNonfinite, Source, TextOptions, TokenOptions, model_for
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.text.corpus import Context
    from elmokit.vectors import Embedded


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

    from elmokit.elmo import load
    from elmokit.progress import counted, tracked
    from elmokit.progress.drawing import watched
    from elmokit.text.corpus import beginning, open_corpus
    from elmokit.text.documents import open_texts
    from elmokit.text.tokenizers import get_tokenizer
    from elmokit.vectors import write_vectors

    files = open_texts([source, *more], **text.files, repeatable=False)
    computing: dict[str, Any] = {"precision": precision, "device": device, "batch_tokens": batch_tokens}
    elmo = load(model_for(model, beginning(files)), **computing, allow_nonfinite=allow_nonfinite)
    wanted: Layers = int(layers) if layers.isdecimal() else layers  # type: ignore[assignment]
    elmo.embed([], layers=wanted)  # says at once if there are no such layers
    tokenizer = get_tokenizer(tokens.over(elmo.config.tokenizer))
    corpus = open_corpus(files, tokenizer, language=text.language, keep_empty=text.meaning == "sentences")
    with watched(corpus.name) as progress:
        sentences = tracked(corpus, progress, "embedding", unit="sentences")
        count = write_vectors(output, _embedded(elmo, sentences, wanted))
    print(translate(f"{output}: {counted(count, 'sentence')}"))


def _embedded(elmo: "Elmo", sentences: Iterable["Context"], layers: "Layers") -> Iterator["Embedded"]:
    from elmokit.vectors import Embedded

    waiting: deque[Context] = deque()

    def tokens() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence.words

    for vectors in elmo.embed_stream(tokens(), layers=layers):
        yield Embedded(waiting.popleft(), vectors)
