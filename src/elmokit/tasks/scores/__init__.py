"""How good predictions are, as the fields that set the tasks count it; every value is from 0 to 1."""

from elmokit.tasks.scores.classes import accuracy, macro_f1
from elmokit.tasks.scores.coreference import CoreferenceScores, coreference_scores
from elmokit.tasks.scores.f1 import F1
from elmokit.tasks.scores.questions import SquadScores, squad_scores
from elmokit.tasks.scores.roles import role_f1
from elmokit.tasks.scores.senses import sense_f1
from elmokit.tasks.scores.spans import SpanScores, chunks, span_f1, to_bio, to_bioes

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
