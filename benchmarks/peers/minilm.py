#!/usr/bin/env python3
"""A peer for `benchmarks/serve.py`: a model of MiniLM-L6's shape with random weights, in an environment of its own.

    python -m venv peer && peer/bin/pip install -c constraints.txt sentence-transformers "infinity-emb[server,torch]"
    peer/bin/python benchmarks/peers/minilm.py minilm        writes the folder
    export OMP_NUM_THREADS=1 DO_NOT_TRACK=1
    peer/bin/infinity_emb v2 --model-id minilm --served-model-name minilm --device cpu --port 7997
    python benchmarks/serve.py --url http://127.0.0.1:7997/embeddings --model minilm

How fast it is does not depend on what its weights are. Its vocabulary has the words of Python's language reference, of
which the sentences are made, so that both servers see 20 tokens. One thread, as `benchmarks/serve.py` gives elmokit.
"""

import re
import sys
from pathlib import Path
from pydoc_data.topics import topics

from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

SHAPE = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def main() -> None:
    """Write the model as sentence-transformers reads it."""
    folder = Path(sys.argv[1])
    parts = folder / "parts"
    parts.mkdir(parents=True)
    known = {word.lower() for text in topics.values() for word in re.findall("[A-Za-z]+", text)}
    words = [*SPECIAL, *sorted({*known, *map(chr, range(33, 127))})]
    (parts / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(vocab_file=str(parts / "vocab.txt")).save_pretrained(parts)
    BertModel(BertConfig(vocab_size=30_522, **SHAPE)).save_pretrained(parts)
    transformer = Transformer(str(parts), max_seq_length=256)
    pooling = Pooling(transformer.get_word_embedding_dimension())
    SentenceTransformer(modules=[transformer, pooling]).save(str(folder))


if __name__ == "__main__":
    main()
