"""`elmokit static`: one vector per word, trained and measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, validators

from elmokit.cli.options import TEXTS, Count, Json, Source, TokenOptions
from elmokit.cli.shards import ShardOptions
from elmokit.config import Tokenization
from elmokit.shards import Shards
from elmokit.static.settings import GloveSettings, SkipGramSettings, TextSettings
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.progress import Progress
    from elmokit.static.corpus import Text
    from elmokit.static.embedders import OneHot, StaticVectors
    from elmokit.static.evaluation import DatasetScore

FLAT = Parameter(name="*")
Method = Literal["add", "mul"]

static = App(name="static", help="Vectors of the older kind, one per word: train them, measure them.")
train = App(name="train", help="Train static vectors on text.")
static.command(train)


@dataclass(frozen=True, kw_only=True)
class _Text(TextSettings):
    """The tokenizer's settings are options of their own."""

    tokenizer: Annotated[Tokenization, Parameter(parse=False)] = "auto"


@FLAT
@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What every kind of vectors is trained on, and where the vectors go."""

    output: Annotated[Path, Parameter(alias="-o")]
    """Where the vectors go: .txt, .vec (also .gz), .bin or .safetensors, which holds no more than the words of one-hot
    vectors."""
    header: bool = True
    """Begin a text file with its words and width, as word2vec does; GloVe does not."""
    workers: int | None = None
    """Processes that tokenize the text; as many as there are cores unless given."""
    text: Annotated[_Text, FLAT] = _Text()
    tokens: TokenOptions = TokenOptions()
    parts: ShardOptions = ShardOptions()


Corpus = Annotated[Source, Parameter(name="CORPUS", help=TEXTS)]


@train.command(name="one-hot")
def one_hot(*corpus: Corpus, options: TrainOptions) -> None:
    """Give every word of a text a dimension of its own.

    Example: elmokit static train one-hot novel.txt -o one-hot.safetensors --min-count 1
    """
    from elmokit.static.embedders import OneHot

    _train(corpus, options, lambda text, *_: OneHot(text.words))


@train.command(name="skip-gram")
def skip_gram(
    *corpus: Corpus, settings: Annotated[SkipGramSettings, FLAT] = SkipGramSettings(), options: TrainOptions
) -> None:
    """Train skip-gram with negative sampling, by gensim.

    Example: elmokit static train skip-gram novel.txt -o vectors.txt --lower-case
    """
    from elmokit.static.skip_gram import import_gensim, train_skip_gram

    import_gensim()
    _train(corpus, options, lambda text, _, progress: train_skip_gram(text, settings, progress=progress))


@train.command
def glove(*corpus: Corpus, settings: Annotated[GloveSettings, FLAT] = GloveSettings(), options: TrainOptions) -> None:
    """Train GloVe: count which words stand near each other, then fit vectors to the logarithms of the counts.

    Example: elmokit static train glove novel.txt -o vectors.txt --lower-case --x-max 10
    """
    from elmokit.static.glove import train_glove

    def work(text: "Text", counts: Sequence[Path], progress: "Progress") -> "StaticVectors":
        return train_glove(text, settings, counts=counts, progress=progress)

    _train(corpus, options, work, counting=settings)


def _train(
    corpus: Sequence[Path],
    options: TrainOptions,
    work: "Callable[[Text, Sequence[Path], Progress], StaticVectors | OneHot]",
    *,
    counting: GloveSettings | None = None,
) -> None:
    """Read the text, do the work, write the vectors. In parts, words are numbered first, then their pairs counted."""
    from elmokit.progress.drawing import watched
    from elmokit.static.cooccurrence import write_counts
    from elmokit.static.corpus import TextSource, open_text
    from elmokit.static.files import check_output

    check_output(options.output)
    parts, reading = options.parts, replace(options.text, tokenizer=options.tokens.over(options.text.tokenizer))
    parts.check(*corpus)
    with watched(str(options.output)) as progress:
        numbers = counts = None
        if parts.count:
            source = TextSource(corpus, reading)
            numbers = Shards(options.output, parts.count, source.made_from, ".npy")
            joining = parts.compute(numbers, source.write_shard, progress)
            if not joining and (counting is None or numbers.missing()):
                return
        with open_text(
            corpus, reading, workers=options.workers, numbers=numbers.paths if numbers else (), progress=progress
        ) as text:
            if numbers and counting:
                made_from = numbers.made_from, counting.window, counting.symmetric
                counts = replace(numbers, made_from=made_from, ending=".counts.npy")
                count = partial(write_counts, text, settings=counting, progress=progress)
                if not parts.compute(counts, count, progress):
                    return
            vectors = work(text, counts.paths if counts else (), progress)
        vectors.save(options.output, header=options.header)
    if numbers:
        numbers.remove()
    print(translate(f"{options.output}: {len(vectors.words):,} vectors of width {vectors.width:,}"))


@static.command
def neighbors(
    word: Annotated[str, Parameter(name="WORD", allow_leading_hyphen=True)],
    /,
    *,
    vectors: Path,
    k: Count = 10,
    lower_case: bool = True,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    json: Json = False,
) -> None:
    """Find the words whose static vectors are nearest to that of a word.

    Example: elmokit static neighbors harbour --vectors glove.txt

    Parameters
    ----------
    vectors
        A file of vectors: word2vec's, GloVe's or fastText's text, word2vec's binary, or .safetensors.
    lower_case
        Take the lower-case form of a word that has no vector.
    output
        A table of them: .csv, .tsv or .parquet.
    """
    from elmokit.cli.output import check_output, print_json, write_rows
    from elmokit.lexicon.neighbors import word_neighbors
    from elmokit.static.files import read_vectors

    check_output(output)
    known = read_vectors(vectors.expanduser())
    chosen = word.lower() if lower_case and word not in known.words else word
    near = word_neighbors(chosen if chosen in known.words else word, known, k=k)
    write_rows(output, near, columns=("word", "cosine"))
    if json:
        print_json({"neighbors": near})
        return
    for other, cosine in near:
        print(f"{cosine:.3f}  {other}")


@static.command
def evaluate(
    *files: Annotated[Path, Parameter(name="FILES")],
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    method: Method = "add",
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    lower_case: bool = True,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Measure how well vectors agree with people, on word similarity and analogy sets.

    Example: elmokit static evaluate vectors.txt EN-MEN-TR-3k.txt questions-words.txt

    Parameters
    ----------
    files
        The vectors and then the sets: WordSim-353, SimLex-999, MEN and such, questions-words, CA8, SCWS. With a model
        in their place, the sets alone.
    model
        An ELMo model to measure instead, layer by layer, on words in context (SCWS).
    method
        How analogies are solved: add (3CosAdd) or mul (3CosMul).
    limit
        Seek answers to analogies among so many words, the first ones of the file; all unless given.
    lower_case
        Take the lower-case form of a word that has no vector.
    json_
        Give the results as JSON.
    """
    from elmokit.cli.output import print_columns, print_json
    from elmokit.errors import ConfigError

    if not model and len(files) < 2:
        raise ConfigError("name the vectors, then at least one set to measure them on")
    results = list(_measured(model, files, method, limit, lower_case=lower_case))
    if json_:
        print_json(results, indent=1)
    else:
        print_columns(_table(results), right=(3, 4, 5))


def _measured(
    model: str | None, files: Sequence[Path], method: Method, limit: int | None, *, lower_case: bool
) -> Iterator["DatasetScore"]:
    from elmokit.elmo import load as load_model
    from elmokit.static import evaluate, evaluate_in_context, load, read_dataset

    datasets = [read_dataset(file) for file in (files if model else files[1:])]
    if model:
        elmo = load_model(model)
        for dataset in datasets:
            yield from evaluate_in_context(elmo, dataset)
        return
    vectors = load(files[0], lower_case=lower_case)
    for dataset in datasets:
        yield from evaluate(vectors, dataset, method=method, limit=limit)


def _table(results: Sequence["DatasetScore"]) -> list[tuple[str, ...]]:
    rows = [tuple(map(translate, ("set", "part", "measure", "value", "found", "of")))]
    for one in results:
        value = "–" if one.value is None else f"{one.value:.3f}"
        rows.append((one.dataset, one.part, one.measure, value, f"{one.found:,}", f"{one.total:,}"))
    return rows
