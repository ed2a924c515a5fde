"""What every contestant's runner does: read one command per line, answer each with a line of JSON.

`round` (seconds for all sentences together, and for each sentence alone), `figures` (what need be asked only once),
`vectors FILE` (every layer of the sentences that are embedded alone, as .npy).
"""

import json
import pathlib
import sys
import time


def answer_commands(commands):
    """Say that all is ready, then call what is asked for until standard input ends."""
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        print(json.dumps(commands[command](*arguments)), flush=True)


def serve(embed, save_vectors, *, single=None):
    """Answer for a function that embeds a list of tokenised sentences.

    `single` is how many sentences are timed by themselves, for a peer that takes long over one; all unless given.
    """
    together, alone = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    embed(alone[:1])

    def run():
        return {"cold": _seconds(embed, together), "alone": [_seconds(embed, [each]) for each in alone[:single]]}

    def vectors(path):
        save_vectors(alone, path)
        return {}

    answer_commands({"round": run, "figures": dict, "vectors": vectors})


def _seconds(embed, sentences):
    start = time.perf_counter()
    embed(sentences)
    return time.perf_counter() - start
