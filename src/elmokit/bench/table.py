"""The figures as a table that Markdown and people read."""

import math

from elmokit.bench.contest import Figures

HEADER = (
    "| model | who | tokens/s | words known | one 20-token sentence | 95% within | peak memory | LSTM / GEMM |\n"
    "|---|---|---|---|---|---|---|---|"
)


def row(model: str, figures: Figures) -> str:
    """One contestant's line."""
    warm = f"{figures.warm_tokens_per_second:,.0f}" if figures.warm_tokens_per_second else ""
    memory = f"{figures.megabytes:,.0f} MB" if figures.megabytes else ""
    share = "" if math.isnan(figures.lstm_share) else f"{figures.lstm_share:.0%}"
    cells = [
        model,
        figures.name,
        f"{figures.tokens_per_second:,.0f}",
        warm,
        f"{figures.latency:.0f} ms",
        f"{figures.latency_95:.0f} ms",
        memory,
        share,
    ]
    return f"| {' | '.join(cells)} |"


def ratio_row(model: str, ours: Figures, peer: Figures) -> str:
    """How many times as fast."""
    together = ours.tokens_per_second / peer.tokens_per_second
    single = peer.latency / ours.latency
    return f"| {model} | {ours.name} against {peer.name} | {together:.1f} × | | {single:.1f} × | | | |"
