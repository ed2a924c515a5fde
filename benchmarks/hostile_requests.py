#!/usr/bin/env python3
"""Mutated requests against `elmokit serve`: no status 5xx but 503, no hang, no growth.

    python benchmarks/hostile_requests.py --requests 10000

Bytes flipped and cut, lines in another order, JSON nested and odd, sizes that lie, headers of all kinds, slow bodies,
sockets closed at half. In the end the server must still be the same process, and no larger.
"""

import argparse
import json
import random
import socket
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from serving import post, running

SEEDS = [
    ("/v1/embeddings", {"input": ["He sat on the bank.", "花"], "model": "en", "encoding_format": "base64"}),
    ("/embed", {"inputs": "A text", "normalize": True}),
    ("/embed_all", {"inputs": ["A text"], "layers": "all", "tokens": True}),
    ("/tokenize", {"inputs": "A text", "add_special_tokens": False}),
    ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}}),
    ("/substitutes", {"text": "on the [bank] of it", "k": 5}),
    ("/surprisal", {"text": "on the bank of it"}),
    ("/cosines", {"first": "a b", "second": "c", "layers": 1}),
    ("/neighbors", {"query": "bank"}),
    ("/senses", {"word": "bank", "limit": 10}),
    ("/concordance", {"word": "bank", "reach": 10}),
    ("/tasks/none", {"inputs": ["a"]}),
]
ODD = [None, True, -1, 0, 2**70, 1e308, "", "\0", "￿", "🎉" * 50, [], {}, [[]], ["a", 1], {"a": None}, "x" * 5000]
HEADERS = ["Host", "Origin", "Content-Length", "Content-Type", "Transfer-Encoding", "Expect", "Connection", "Upgrade"]
VALUES = [
    "",
    "chunked",
    "-1",
    "99999999999999999999",
    "null",
    "a\tb",
    "text/plain",
    "application/json; charset=x",
    "\xff",
]
DEADLINE = 20  # seconds; more than that is a hang


def mutated(randomness):
    """The bytes of a request that was spoiled, and whether our half is closed after it."""
    path, body = randomness.choice(SEEDS)
    kind = randomness.choice(["value", "bytes", "depth", "header", "cut", "length", "line", "size", "chunks"])
    if kind == "value":
        return post(path, body | {randomness.choice([*body, "new"]): randomness.choice(ODD)}), False
    if kind == "depth":
        depth = randomness.choice([10, 1000, 50_000])
        return post(path, randomness.choice([b"[", b'{"inputs":']) * depth), False
    if kind == "header":
        return post(path, body, **{randomness.choice(HEADERS): randomness.choice(VALUES)}), True
    if kind == "length":
        return post(path, body, Content_Length=randomness.choice([0, 1, 10_000, 10**12, -5, "abc"])), True
    if kind == "size":
        return post(path, {"inputs": "word " * 10 ** randomness.randint(1, 5)}), False
    if kind == "chunks":
        return chunked(path, randomness), True
    content = bytearray(post(path, body))
    if kind == "cut":
        return bytes(content[: randomness.randrange(len(content))]), True
    if kind == "line":
        lines = content.split(b"\r\n")
        randomness.shuffle(lines)
        return b"\r\n".join(lines), True
    for _ in range(randomness.randint(1, 20)):
        content[randomness.randrange(len(content))] = randomness.randrange(256)
    return bytes(content), True


def chunked(path, randomness):
    """A body in chunks, the sizes of which are not always right."""
    lines = ("Host: localhost", "Content-Type: application/json", "Transfer-Encoding: chunked")
    head = "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""])
    part = json.dumps({"inputs": "a"}).encode()
    size = randomness.choice([len(part), len(part) + 1, 0, 2**40])
    return head.encode() + f"{size:x}\r\n".encode() + part + b"\r\n0\r\n\r\n"


def slowly(connection, content, *, body):
    """Send the first bytes one by one, or all but the last at once and these so; what is left to send."""
    first = max(0, len(content) - 40) if body else 0
    connection.sendall(content[:first])
    for byte in content[first : first + 40]:
        connection.sendall(bytes([byte]))
        time.sleep(0.005)
    return content[first + 40 :]


def attempt(port, seed):
    """Send one, slowly at times; the status that came, or how the connection ended."""
    randomness = random.Random(seed)
    content, half = mutated(randomness)
    half = half and randomness.random() < 0.97  # of the others, some wait for what never comes
    start = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
            if randomness.random() < 0.04:
                content = slowly(connection, content, body=randomness.random() < 0.5)
            connection.sendall(content)
            if half:
                connection.shutdown(socket.SHUT_WR)
            first = connection.recv(65536)
            while first and connection.recv(65536):
                pass
    except TimeoutError:
        return f"hang (seed {seed})"
    except OSError:
        return "broken off"
    assert time.monotonic() - start < DEADLINE
    words = first.split(b" ", 2)
    return words[1].decode("latin-1") if len(words) > 2 else "closed"


def memory(process):
    """Megabytes that a process holds."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def campaign(port, count, *, first=0, threads=8):
    """How often each status came."""
    with ThreadPoolExecutor(threads) as pool:
        return Counter(pool.map(lambda seed: attempt(port, seed), range(first, first + count)))


def bad(statuses):
    """What must not have come."""
    return {
        status: n
        for status, n in statuses.items()
        if status.startswith("hang") or (status[:1] == "5" and status != "503")
    }


def main() -> None:
    """Run the campaign in ten parts and print the memory after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    args = parser.parse_args()
    total: Counter[str] = Counter()
    with running("--limit.slow-seconds", "2") as (process, port, _):
        for part in range(10):
            total += campaign(port, args.requests // 10, first=part * args.requests)
            print(f"{total.total():>7,} requests, {memory(process):6.0f} MB", flush=True)
        assert process.poll() is None
    print(dict(total.most_common()))
    if found := bad(total):
        sys.exit(f"bad: {found}")


if __name__ == "__main__":
    main()
