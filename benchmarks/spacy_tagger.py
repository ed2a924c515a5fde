"""Parts of speech by spaCy, with ELMo's vectors and with spaCy's own embeddings of words and affixes.

    python benchmarks/spacy_tagger.py DATA [--sentences 2000] [--epochs 5]

DATA has train.conllu and dev.conllu, as Universal Dependencies has them. Both taggers are that of docs/spacy/tagger.cfg
but for their embeddings, read the same sentences, and are scored after the last epoch, by UPOS accuracy on all of dev.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import spacy
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vocab import Vocab

from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers import read_tagged

CONFIG = Path(__file__).parents[1] / "docs" / "spacy" / "tagger.cfg"
OWN = {  # spaCy's default for pipelines without vectors
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 96,
    "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
    "rows": [5000, 1000, 2500, 2500],
    "include_static_vectors": False,
}


def as_doc(sentence: TaggedSentence) -> Doc:
    """The sentence with its tags."""
    return Doc(Vocab(), words=list(sentence.tokens), tags=list(sentence.tags))


def config_with(embed: dict[str, object] | None, folder: Path) -> Path:
    """The configuration of the docs, with another embedding if one is given."""
    config = spacy.util.load_config(CONFIG)
    if embed is not None:
        config["components"]["tok2vec"]["model"]["embed"] = embed
    config.to_disk(folder / "tagger.cfg")
    return folder / "tagger.cfg"


def accuracy(folder: Path, sentences: list[TaggedSentence]) -> float:
    """The share of tokens whose tag is right."""
    nlp = spacy.load(folder)
    docs = nlp.pipe(Doc(nlp.vocab, words=list(sentence.tokens)) for sentence in sentences)
    examples = [Example(doc, as_doc(sentence)) for doc, sentence in zip(docs, sentences, strict=True)]
    return float(nlp.evaluate(examples)["tag_acc"])


def main() -> None:
    """Train both and print their scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sentences", type=int, help="the first so many of train; all unless given")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    known, dev = (list(read_tagged(arguments.data / f"{part}.conllu")) for part in ("train", "dev"))
    known = known[: arguments.sentences]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, sentences in (("train", known), ("dev", dev)):
            DocBin(docs=map(as_doc, sentences)).to_disk(folder / f"{name}.spacy")
        paths = {f"paths.{name}": str(folder / f"{name}.spacy") for name in ("train", "dev")}
        for name, embed in (("spaCy's own", OWN), ("ELMo", None)):
            start = time.process_time()
            train(
                config_with(embed, folder), folder / name, overrides=paths | {"training.max_epochs": arguments.epochs}
            )
            score = accuracy(folder / name / "model-last", dev)
            seconds = time.process_time() - start
            print(f"{name}: {score:.2%} of dev, {len(known):,} sentences, {seconds:.0f} s of a processor")


if __name__ == "__main__":
    main()
