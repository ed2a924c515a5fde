"""Whether a page without a server tokenizes as elmokit does: both tokenize lines of a text, and node compares.

python benchmarks/javascript_tokens.py jieba TEXT
"""

import argparse
import json
import random
import subprocess

from elmokit.serve.bundle import bundle
from elmokit.serve.page_export import BROWSER
from elmokit.text.documents import iter_documents, open_texts
from elmokit.text.javascript import describe_tokenizer, javascript_patterns, jieba_dictionary
from elmokit.text.tokenizers import get_tokenizer

SCRIPT = """
const { settings, patterns, dictionary, lines } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const compiled = Object.entries(patterns).map(([name, { source, flags }]) => [name, new RegExp(source, flags)]);
const jieba = new modules["browser/jieba.js"].Jieba(dictionary);
const tokenize = modules["browser/tokenizers.js"].makeTokenizer(settings, Object.fromEntries(compiled), jieba);
console.log(JSON.stringify(lines.map((line) => tokenize(line).map(({ text, start, stop }) => [text, start, stop]))));
"""


def main() -> None:
    """Compare some lines of a text, drawn at random."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="+")
    parser.add_argument("--lines", type=int, default=2000)
    given = parser.parse_args()
    documents = iter_documents(open_texts(given.text))
    paragraphs = [line for document in documents for line in document.text.splitlines() if line.strip()]
    lines = random.Random(0).sample(paragraphs, min(given.lines, len(paragraphs)))
    tokenize = get_tokenizer(given.tokenizer)
    expected = [[list(token) for token in tokenize(line)] for line in lines]
    question = {"settings": describe_tokenizer(given.tokenizer), "patterns": javascript_patterns()}
    question |= {"dictionary": jieba_dictionary(), "lines": lines}
    script = bundle(BROWSER / "tokenizers.js") + bundle(BROWSER / "jieba.js").partition("modules = {};")[2] + SCRIPT
    command = ["node", "-e", script]
    answer = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=True).stdout
    found = json.loads(answer)
    same = sum(one == other for one, other in zip(found, expected, strict=True))
    print(f"{same:,} of {len(lines):,} paragraphs have the same tokens, {sum(map(len, expected)):,} in all")


if __name__ == "__main__":
    main()
