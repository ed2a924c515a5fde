"""What every peer's runner does: read a command a line, answer each with a line of JSON."""

import json
import pathlib
import sys
import time


def serve(embed, save_vectors, *, single=None):
    """Answer `throughput`, `latency` and `vectors FILE` for a function that embeds a list of tokenised sentences.

    `single` is how many sentences are timed by themselves, for a peer that takes long over one; all unless given.
    """
    workload = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    embed(workload["single"][:1])
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "vectors":
            save_vectors(workload["single"], arguments[0])
            answer = {}
        elif command == "throughput":
            answer = {"seconds": _seconds(embed, workload["sentences"])}
        else:
            answer = {"seconds": [_seconds(embed, [sentence]) for sentence in workload["single"][:single]]}
        print(json.dumps(answer), flush=True)


def _seconds(embed, sentences):
    start = time.perf_counter()
    embed(sentences)
    return time.perf_counter() - start
