#!/usr/bin/env python3
"""`elmokit serve` under load, on this machine's loopback; the clients run on the same cores.

    python benchmarks/serve.py                        1, 8 and 32 clients of single 20-token sentences, in turns
    python benchmarks/serve.py --clients 1000 --seconds 120
                                                      each vector is compared; the server's memory every second
    python benchmarks/serve.py --url http://127.0.0.1:7997/embeddings --model minilm
                                                      a peer behind its own server, by OpenAI's route

A client has one connection and sends the next request when the last is answered. Status 429 and 503 are counted, any
other error or wrong vector ends the run. A peer: `benchmarks/peers/minilm.py` says how.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile_requests import memory
from serving import running

import elmokit
from elmokit.bench import make_workload
from elmokit.latency import shaped

SENTENCES, TOKENS = 256, 20
ROUNDING = 2e-6  # a batch adds in another order than a sentence alone
REFUSED = (429, 503)
SETTLING = 10  # seconds before memory is compared


@dataclass
class Load:
    """What clients met."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    statuses: Counter[int] = field(default_factory=Counter)
    megabytes: list[float] = field(default_factory=list)  # of the server, every second
    reasons: Counter[bytes] = field(default_factory=Counter)  # of refusals

    def row(self, clients: int, duration: float) -> str:
        """A row in Markdown."""
        middle, most = (1000 * np.quantile(self.seconds, share) for share in (0.5, 0.95))
        refused = sum(self.statuses[status] for status in REFUSED)
        return f"| {clients:,} | {len(self.seconds) / duration:.0f} | {middle:.1f} | {most:.1f} | {refused:,} |"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--model", default="en")
    parser.add_argument("--url", help="a server that runs already; its vectors are not compared")
    args = parser.parse_args()
    words = [word for sentence in make_workload(None, 512)[0] for word in sentence if word.isalpha()]
    texts = [" ".join(sentence) for sentence in shaped(words, SENTENCES, TOKENS)]
    print("| clients | requests/s | median ms | 95% ms | refused |\n|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        process, url, expected = None, args.url, None
        if url is None:
            process, port, _ = stack.enter_context(running("--model", args.model))
            url, expected = f"http://127.0.0.1:{port}/v1/embeddings", elmokit.load(args.model).sentence_vectors(texts)
        for _ in range(args.rounds):
            for clients in args.clients:
                run = measure(url, args.model, texts, expected, clients, args.seconds, process)
                load = asyncio.run(run)
                print(load.row(clients, args.seconds), flush=True)
                report(load)


def report(load: Load) -> None:
    """What else is to be said of a long run."""
    if settled := load.megabytes[SETTLING:]:
        print(f"\nmemory after {SETTLING} s: {min(settled):.0f} to {max(settled):.0f} MB; {dict(load.statuses)}\n")
        print(load.reasons.most_common(3))


async def measure(url, model, texts, expected, clients, seconds, process) -> Load:
    """All clients at once, for so many seconds."""
    load, end = Load(), time.monotonic() + seconds
    jobs = [client(url, model, texts, expected, number, end, load) for number in range(clients)]
    await asyncio.gather(*jobs, watch(process, end, load))
    return load


async def watch(process, end, load) -> None:
    """The server's memory, every second."""
    while process is not None and time.monotonic() < end:
        load.megabytes.append(memory(process))
        await asyncio.sleep(1)


async def client(url, model, texts, expected, number, end, load) -> None:
    """One connection; a sentence at a time, each client beginning at another."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    turn = number
    while time.monotonic() < end:
        index = turn % len(texts)
        turn += 1
        body = json.dumps({"input": texts[index], "model": model, "encoding_format": "base64"}).encode()
        lines = f"Host: {address.netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        start = time.perf_counter()
        writer.write(f"POST {address.path} HTTP/1.1\r\n{lines}\r\n\r\n".encode() + body)
        status, answer = await read_answer(reader)
        load.statuses[status] += 1
        if status in REFUSED:
            load.reasons[answer] += 1
            await asyncio.sleep(0.1)
            continue
        assert status == 200, answer
        load.seconds.append(time.perf_counter() - start)
        if expected is not None:
            found = np.frombuffer(base64.b64decode(json.loads(answer)["data"][0]["embedding"]), "<f4")
            assert np.abs(found - expected[index]).max() <= ROUNDING, texts[index]
    writer.close()


async def read_answer(reader) -> tuple[int, bytes]:
    """The status and the body."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length:")[2].split()[0])
    return int(head.split(b" ", 2)[1]), await reader.readexactly(size)


if __name__ == "__main__":
    main()
