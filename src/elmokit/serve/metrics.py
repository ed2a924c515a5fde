"""What `/metrics` shows, in Prometheus' form: requests, their time, batches, the queue, tokens."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from elmokit.batching import Batcher

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = tuple(1 << power for power in range(14))


class Metrics:
    """Numbers of one server; their labels are few, whatever is asked."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        known: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("elmokit_requests", "Requests answered.", ["route", "status"], **known)
        self.seconds = Histogram("elmokit_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, **known)
        self.under_way = Gauge("elmokit_requests_under_way", "Requests that are being answered.", **known)
        self.sentences = Histogram(
            "elmokit_batch_sentences", "Sentences embedded together.", ["model"], buckets=SIZES, **known
        )
        self.batches = Histogram("elmokit_batch_tokens", "Tokens embedded together.", ["model"], buckets=SIZES, **known)
        self.tokens = Counter("elmokit_tokens", "Tokens embedded.", ["model"], **known)
        self.queue = Gauge("elmokit_queue_tokens", "Tokens that wait to be embedded.", ["model"], **known)

    def batch(self, model: str, sentences: int, tokens: int) -> None:
        """A batch of so many sentences and tokens runs."""
        self.sentences.labels(model).observe(sentences)
        self.batches.labels(model).observe(tokens)
        self.tokens.labels(model).inc(tokens)

    def watch(self, model: str, batcher: Batcher) -> None:
        """Show how much waits before a batcher."""
        self.queue.labels(model).set_function(lambda: batcher.waiting_tokens)

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self.registry)
