"""How good predictions are, as the fields that set the tasks count it; every value is from 0 to 1."""

from elmokit.tasks.scores.coreference import CoreferenceScores, coreference_scores
from elmokit.tasks.scores.f1 import F1, SquadScores, accuracy, macro_f1, sense_f1, squad_scores
from elmokit.tasks.scores.spans import SpanScores, chunks, role_f1, span_f1, to_bio, to_bioes

__all__ = [
    "F1",
    "CoreferenceScores",
    "SpanScores",
    "SquadScores",
    "accuracy",
    "chunks",
    "coreference_scores",
    "macro_f1",
    "role_f1",
    "sense_f1",
    "span_f1",
    "squad_scores",
    "to_bio",
    "to_bioes",
]
