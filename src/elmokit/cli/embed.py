"""`elmokit embed`: text in, vectors out."""

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from elmokit.config import TokenizerName

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.text.tokenizers import Tokenizer
    from elmokit.vectors import Embedded


def embed(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True)],
    /,
    *,
    model: Annotated[str, Parameter(alias="-m")],
    output: Annotated[Path, Parameter(alias="-o")],
    layers: str = "average",
    split: Annotated[bool, Parameter(negative="")] = False,
    tokenizer: TokenizerName | None = None,
    precision: Literal["fp32", "int8"] = "fp32",
    batch_tokens: int = 4096,
    device: str = "cpu",
) -> None:
    """Give every token of a text its contextual vector.

    Example: elmokit embed novel.txt -m MODEL -o vectors.h5 --split

    Parameters
    ----------
    source
        A UTF-8 text file with a sentence a line, or - for standard input.
    model
        A model's folder or file.
    output
        Where the vectors go: .h5 (AllenNLP's layout), .npz, .safetensors or .parquet.
    layers
        average, top, all, or a layer's number; 0 is the context-free token vector.
    split
        The input is running text with blank lines between paragraphs: split it into sentences.
    tokenizer
        How sentences are cut into tokens; the model's own way unless given.
    precision
        fp32, or int8: faster on large models, for nearly the same vectors.
    batch_tokens
        Tokens computed at a time; more is faster up to a point and takes more memory.
    device
        Where to compute: cpu, or cuda where there is a GPU.
    """
    from elmokit.vectors import check_output

    check_output(output)

    from elmokit.cli.lines import read_sentences
    from elmokit.cli.progress import track
    from elmokit.elmo import load
    from elmokit.text.tokenizers import get_tokenizer
    from elmokit.vectors import write_vectors

    elmo = load(model, precision=precision, device=device, batch_tokens=batch_tokens)
    cut = get_tokenizer(tokenizer) if tokenizer else elmo.tokenizer
    sentences = track(read_sentences(source, split=split), unit="sentences")
    count = write_vectors(output, _embedded(elmo, sentences, cut, int(layers) if layers.isdecimal() else layers))  # type: ignore[arg-type]
    print(f"{output}: {count:,} sentences")


def _embedded(elmo: "Elmo", sentences: Iterable[str], cut: "Tokenizer", layers: "Layers") -> Iterator["Embedded"]:
    from elmokit.vectors import Embedded

    waiting: deque[tuple[str, list[str]]] = deque()

    def tokenized() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append((sentence, [token.text for token in cut(sentence)]))
            yield waiting[-1][1]

    for vectors in elmo.embed_stream(tokenized(), layers=layers):
        yield Embedded(*waiting.popleft(), vectors)
