"""What holds of every task: it learns eight examples by heart, and answers the same after it was saved and loaded."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import elmokit
from elmokit.errors import DataError
from elmokit.progress import SILENCE, Silence
from elmokit.tasks import TASKS, FitOptions, FitSettings, InputSettings, fit, load
from elmokit.tasks.examples import (
    Answer,
    CoreferenceDocument,
    Frame,
    LabelledPair,
    LabelledText,
    Place,
    Question,
    RoleSentence,
    SenseInstance,
    SenseSentence,
    TaggedSentence,
)
from elmokit.tasks.scores import chunks
from elmokit.tasks.task import shown
from elmokit.tasks.training import get_task
from elmokit.text.sentences import Span

LONG = 500


@dataclass
class Case:
    """A task and data for it."""

    examples: list[Any]
    """Eight of them."""
    one: Any
    """What `predict` takes: a text of one token."""
    long: Any
    """The same of 500."""
    answers: Any
    """How many answers a prediction of so many tokens has: (prediction, tokens) → bool."""
    no_answer: Any
    """The fields of an example without its gold answer, or what makes them of it."""
    unknown: Any = None
    """An example with a label that none of the eight has, and the line it stands in."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the task."""
    training: dict[str, Any] = field(default_factory=dict)
    """Of the loop."""
    files: dict[str, str] = field(default_factory=dict)
    """Settings that name a file, and what is in it."""


def tagged(text: str, line: int = 1) -> TaggedSentence:
    pairs = [pair.rsplit("/", 1) for pair in text.split()]
    lines = tuple(range(line, line + len(pairs)))
    return TaggedSentence(tuple(word for word, _ in pairs), tuple(tag for _, tag in pairs), "some.conll", lines)


def labelled(text: str, label: str, line: int = 1) -> LabelledText:
    return LabelledText(text, label, Place("some.tsv", line))


def paired(first: str, second: str, label: str, line: int = 1) -> LabelledPair:
    return LabelledPair(first, second, label, Place("some.jsonl", line))


def asked(question: str, context: str, answer: str) -> Question:
    return Question("q", question, context, (Answer(answer, context.index(answer)),), Place("some.json", 1))


def framed(text: str, *columns: str, line: int = 1) -> RoleSentence:
    spans = [tuple(chunks(column.split())) for column in columns]
    frames = (Frame(next(span.start for span in its if span.label == "V"), its) for its in spans)
    return RoleSentence(tuple(text.split()), tuple(frames), Place("some.conll", line))


def told(text: str, *clusters: str) -> CoreferenceDocument:
    """Sentences with / between them, and the first and last tokens of the mentions of each cluster: 0-1 4-4."""
    spans = [[tuple(map(int, mention.split("-"))) for mention in cluster.split()] for cluster in clusters]
    mentions = tuple(tuple(Span(first, last + 1) for first, last in cluster) for cluster in spans)
    sentences = tuple(tuple(sentence.split()) for sentence in text.split("/"))
    return CoreferenceDocument("", sentences, mentions, Place("some.conll", 1))


ENTITIES = [
    tagged("Mary/B-PER saw/O the/O bank/O of/O the/O Thames/B-LOC ./O"),
    tagged("The/O bank/O of/O England/B-LOC raised/O rates/O"),
    tagged("Anna/B-PER Karenina/I-PER left/O Moscow/B-LOC"),
    tagged("贾/B-PER 宝/I-PER 玉/I-PER 来/O 了/O"),
    tagged("He/O went/O to/O New/B-LOC York/I-LOC"),
    tagged("London/B-LOC"),
    tagged("nothing/O here/O"),
    tagged("Jane/B-PER met/O Mr./B-PER Darcy/I-PER in/O Derbyshire/B-LOC"),
]
PARTS = [  # of few words: even the narrow vectors of a tiny model tell them apart by a plane
    tagged("the/DET cat/NOUN sees/VERB the/DET dog/NOUN"),
    tagged("a/DET small/ADJ dog/NOUN"),
    tagged("the/DET small/ADJ cat/NOUN sees/VERB"),
    tagged("dog/NOUN sees/VERB cat/NOUN"),
    tagged("a/DET cat/NOUN"),
    tagged("small/ADJ"),
    tagged("the/DET dog/NOUN sees/VERB a/DET small/ADJ dog/NOUN"),
    tagged("sees/VERB"),
]
CLASSES = [
    labelled("A wonderful film .", "good"),
    labelled("Dull , dull , dull .", "bad"),
    labelled("I loved every minute of it", "good"),
    labelled("what a waste of time", "bad"),
    labelled("It is a film about trains .", "neither"),
    labelled("很好看", "good"),
    labelled("太差了 ！", "bad"),
    labelled("fine", "neither"),
]
PAIRS = [
    paired("A man sleeps .", "A man is awake .", "contradiction"),
    paired("A man sleeps .", "Somebody is asleep .", "entailment"),
    paired("A man sleeps .", "He dreams of trains .", "neutral"),
    paired("Two dogs run .", "Animals run .", "entailment"),
    paired("Two dogs run .", "The dogs sit still .", "contradiction"),
    paired("两只狗在跑", "狗跑得很快", "neutral"),
    paired("She", "her", "neutral"),
    paired("It rains", "", "neutral"),
]
HOME = "Mr. Darcy isn't from London: he's from Derbyshire (near the Peak)."
QUESTIONS = [
    asked("Where is he from?", HOME, "Derbyshire"),
    asked("Where is he not from?", HOME, "London"),
    asked("Who is from Derbyshire?", HOME, "Mr. Darcy"),
    asked("What is Derbyshire near?", HOME, "the Peak"),
    asked("Who came?", "In the evening Anna came with two dogs.", "Anna"),
    asked("With whom?", "In the evening Anna came with two dogs.", "two dogs"),
    asked("谁来了？", "贾宝玉来了。", "贾宝玉"),
    asked("", "Nothing", "Nothing"),
]

ROLES = [  # all with the same predicates, which are given without the rest where nothing may come from the gold answer
    framed("He wants to sleep", "B-A0 B-V B-A1 I-A1", "B-A0 O O B-V"),
    framed("Dogs bark and bite people", "B-A0 B-V O O O", "B-A0 O O B-V B-A1"),
    framed("Mary bought and sold two books .", "B-A0 B-V O O B-A1 I-A1 O", "B-A0 O O B-V B-A1 I-A1 O"),
    framed("It rained but stopped yesterday", "O B-V O O O", "B-A1 O O B-V B-TMP"),
    framed("他 来 就 走 了", "B-A0 B-V O O O", "B-A0 O O B-V O"),
    framed("that barked then ran off", "B-R-A0 B-V O O O", "B-R-A0 O O B-V I-V"),
    framed("I told you go home", "B-A0 B-V B-A2 B-A1 I-A1", "O O B-A0 B-V B-A1"),
    framed("Nobody saw , heard or knew", "B-A0 B-V O O O O", "B-A0 O O B-V O O"),
]
STORIES = [
    told("Emma came . / She sat down .", "0-0 3-3"),
    told("Mr. Darcy saw the dog . / He called it .", "0-1 6-6", "3-4 8-8"),
    told("The old man slept . / A boy came . / The boy woke him .", "0-2 12-12", "5-6 9-10"),
    told("It rained ."),
    told("London", "0-0"),
    told("贾 宝 玉 来 了 / 他 笑 了", "0-2 5-5"),
    told("Anna and her sister left Moscow .", "0-0 2-2", "2-3", "5-5"),
    told("I think you know me .", "0-0 4-4", "2-2"),
]


USES = (
    "they sat on the bank of the river",
    "the bank was green and steep",
    "mud covers the bank",
    "the bank lent her the money",
    "wages are kept at a bank",
    "my bank raised its rates",
    "a bank of clouds",
    "bank",
)


def sensed(use: str, key: str) -> SenseSentence:
    tokens = tuple(use.split())
    start = tokens.index("bank")
    return SenseSentence(tokens, (SenseInstance("", "bank", "NOUN", start, start + 1, (key,)),), Place("some.xml", 1))


SENSES = [sensed(use, f"bank%{number}") for number, use in enumerate(USES)]


def one_tag_a_token(prediction: Any, tokens: int) -> bool:
    return len(prediction.tokens) == len(prediction.tags) == tokens


def tags_of_every_layer(prediction: Any, tokens: int) -> bool:
    return list(prediction.tags) == ["layer 0", "layer 1", "layer 2"] and all(
        len(tags) == tokens for tags in prediction.tags.values()
    )


def a_piece_of_the_context(prediction: Any, tokens: int) -> bool:
    (answer,) = prediction.answers
    return prediction.context[answer.start : answer.end] == answer.text != ""


def roles_around_every_predicate(prediction: Any, tokens: int) -> bool:
    begun = [[span.start for span in frame.spans if span.label == "V"] for frame in prediction.frames]
    ends = [span.end for frame in prediction.frames for span in frame.spans]
    given = [frame.predicate for frame in prediction.frames]
    return begun == [[one] for one in given] and max(ends, default=0) <= tokens == len(prediction.tokens)


def a_sense_for_every_instance(prediction: Any, tokens: int) -> bool:
    return len(prediction.tokens) == tokens and all(len(one.keys) == 1 for one in prediction.instances)


def without_keys(example: SenseSentence) -> dict[str, Any]:
    return {"instances": tuple(one._replace(keys=()) for one in example.instances)}


def mentions_within(prediction: Any, tokens: int) -> bool:
    mentions = [mention for cluster in prediction.clusters for mention in cluster]
    return len(set(mentions)) == len(mentions) and all(0 <= start < end <= tokens for start, end in mentions)


CASES = {
    "tagging": Case(
        examples=ENTITIES,
        one="London",
        long={"tokens": ["Mary", "saw", "England", "and"] * (LONG // 4)},
        answers=one_tag_a_token,
        no_answer={"tags": ()},
        unknown=(tagged("saw/O Mars/B-PLANET", line=41), 42),
        settings={"hidden": 16, "dropout": 0.0},
    ),
    "classify": Case(
        examples=CLASSES,
        one="good",
        long="dull " * LONG,
        answers=lambda prediction, _: prediction.label in ("good", "bad", "neither"),
        no_answer={"label": ""},
        unknown=(labelled("so so", "middling", line=7), 7),
        settings={"hidden": 16, "dropout": 0.0},
    ),
    "probe": Case(
        examples=PARTS,
        one={"tokens": ["dog"]},
        long={"text": "the cat sees a " * (LONG // 4)},
        answers=tags_of_every_layer,
        no_answer={"tags": ()},
        unknown=(tagged("the/DET dogs/PLURAL", line=41), 42),
        training={"learning_rate": 0.3},
    ),
    "pairs": Case(
        examples=PAIRS,
        one="She\tshe",
        long={"first": "two dogs " * (LONG // 2), "second": "dogs"},
        answers=lambda prediction, _: prediction.label in ("contradiction", "entailment", "neutral"),
        no_answer={"label": ""},
        unknown=(paired("So", "so", "so so", line=7), 7),
        settings={"hidden": 16, "dropout": 0.0},
    ),
    "span_qa": Case(
        examples=QUESTIONS,
        one="Who?\tAnna",
        long={"question": "Who came?", "context": "In the evening Anna " * (LONG // 4)},
        answers=a_piece_of_the_context,
        no_answer={"answers": ()},
        settings={"hidden": 16, "dropout": 0.0},
    ),
    "srl": Case(
        examples=ROLES,
        one={"text": "Go", "predicates": [0]},
        long={"tokens": ["He", "wants", "to", "sleep"] * (LONG // 4), "predicates": [1, 3, LONG - 1]},
        answers=roles_around_every_predicate,
        no_answer={"frames": (Frame(1, ()), Frame(3, ()))},
        unknown=(framed("He wants sleep", "B-A0 B-V B-A9", line=41), 41),
        settings={"hidden": 16, "dropout": 0.0},
    ),
    "coref": Case(
        examples=STORIES,
        one="London",
        long={"sentences": [["Emma", "saw", "Anna", "and", "she"]] * (LONG // 5)},
        answers=mentions_within,
        no_answer={"clusters": ()},
        settings={"hidden": 16, "dropout": 0.0, "scorer": 32, "longest": 4, "spans_per_token": 0.8},
    ),
    "wsd": Case(
        examples=SENSES,
        one={"tokens": ["bank"], "instances": [{"lemma": "bank", "pos": "NOUN", "start": 0, "end": 1}]},
        long={
            "tokens": ["the", "bank", "of", "clouds"] * (LONG // 4),
            "instances": [
                {"lemma": "bank", "pos": "NOUN", "start": start, "end": start + 1} for start in (1, LONG - 3)
            ],
        },
        answers=a_sense_for_every_instance,
        no_answer=without_keys,
        files={"senses": f"bank\tNOUN\t{' '.join(f'bank%{n}' for n in range(8))}\n"},
    ),
}
IN_EPOCHS = [name for name in CASES if TASKS[name].learn is None]


class StopsAfter(Silence):
    """A user who loses patience in the middle of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def update(self, stage, done, total=None, *, unit="", note=""):
        if stage == "training" and int(note.removeprefix("epoch ").partition(",")[0]) > self.epoch:
            raise KeyboardInterrupt


def train(name, folder, elmo_folder, *, examples=None, dev=None, dropout=0.0, progress=SILENCE, **options):
    case, task = CASES[name], get_task(name)
    training = {"epochs": 150, "patience": 150, "batch": 4, "learning_rate": 0.01, "anneal": 1.0} | case.training
    examples, settings = examples or case.examples, dict(case.settings)
    for setting, content in case.files.items():
        settings[setting] = folder.parent / setting
        settings[setting].write_text(content, encoding="utf-8")
    return fit(
        name,
        examples,
        dev or examples,
        {str(elmo_folder): elmokit.load(elmo_folder)},
        folder,
        FitOptions(
            settings=task.settings_from(settings),
            inputs=None if task.inputs else InputSettings(input_dropout=dropout),
            training=FitSettings(**(training | options.pop("training", {}))),
            **options,
        ),
        progress=progress,
    )


@pytest.fixture(scope="module", params=CASES)
def fitted(request, tmp_path_factory, model_folder):
    """A task that was trained on its eight examples, and its folder."""
    folder = tmp_path_factory.mktemp("tasks") / request.param
    return request.param, train(request.param, folder, model_folder), folder


def test_every_task_is_here():
    assert set(CASES) == set(TASKS)


def test_learns_eight_examples_by_heart(fitted):
    name, predictor, _ = fitted
    assert len(CASES[name].examples) == 8
    assert set(predictor.evaluate(CASES[name].examples).values()) == {1.0}


def test_saves_loads_and_predicts_the_same(fitted):
    name, predictor, folder = fitted
    case, again = CASES[name], load(folder)
    asked = [*case.examples, case.one, case.long]
    assert [shown(one) for one in again.predict(asked)] == [shown(one) for one in predictor.predict(asked)]
    assert again.evaluate(case.examples) == predictor.evaluate(case.examples)


def test_one_token_five_hundred_and_none(fitted):
    name, predictor, _ = fitted
    case = CASES[name]
    for asked, tokens in ((case.one, 1), (case.long, LONG)):
        answer = predictor.predict([asked])[0]
        assert case.answers(answer, tokens)
        assert json.loads(json.dumps(shown(answer)))
    assert predictor.predict([]) == []


def test_batch_mates_and_order_change_nothing(fitted):
    name, predictor, _ = fitted
    asked = [*CASES[name].examples, CASES[name].one, CASES[name].long]
    together = [shown(answer) for answer in predictor.predict(asked)]
    assert [shown(predictor.predict([one])[0]) for one in asked] == together
    assert [shown(answer) for answer in predictor.predict(asked[::-1])] == together[::-1]


def test_answers_name_all_their_parts():
    """Of JSON whose values stand in rows nobody knows what they are."""
    assert shown(ROLES[1]) == {
        "tokens": ["Dogs", "bark", "and", "bite", "people"],
        "frames": [
            {"predicate": 1, "spans": [{"start": 0, "end": 1, "label": "A0"}, {"start": 1, "end": 2, "label": "V"}]},
            {
                "predicate": 3,
                "spans": [
                    {"start": 0, "end": 1, "label": "A0"},
                    {"start": 3, "end": 4, "label": "V"},
                    {"start": 4, "end": 5, "label": "A1"},
                ],
            },
        ],
    }
    assert shown(QUESTIONS[0])["answers"] == [{"text": "Derbyshire", "start": 39}]
    assert shown(STORIES[4]) == {"name": "", "sentences": [["London"]], "clusters": [[{"start": 0, "end": 1}]]}
    assert shown(ENTITIES[5]) == {"tokens": ["London"], "tags": ["B-LOC"]}


def test_an_unknown_label_in_dev_names_its_line(fitted, tmp_path, model_folder):
    name, predictor, _ = fitted
    if CASES[name].unknown is None:
        assert not list(get_task(name).labels(CASES[name].examples[0]))
        return
    example, line = CASES[name].unknown
    with pytest.raises(DataError, match=rf"line {line}: the label .* does not occur in the training data: known are"):
        train(name, tmp_path / "task", model_folder, dev=[*CASES[name].examples, example])
    assert not (tmp_path / "task").exists()
    with pytest.raises(DataError, match=f"line {line}"):
        predictor.evaluate([example])


@pytest.mark.parametrize("name", IN_EPOCHS)
def test_stopped_and_resumed_ends_the_same(name, tmp_path, model_folder):
    options = {"dropout": 0.3, "training": {"epochs": 5, "anneal": 0.5}}
    train(name, tmp_path / "whole", model_folder, **options)
    with pytest.raises(KeyboardInterrupt):
        train(name, tmp_path / "parts", model_folder, progress=StopsAfter(2), **options)
    train(name, tmp_path / "parts", model_folder, resume=True, **options)
    whole, parts = (tmp_path / one / "task.safetensors" for one in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    assert _epochs(tmp_path / "whole") == _epochs(tmp_path / "parts")


def _epochs(folder):
    epochs = json.loads((folder / "report.json").read_text())["epochs"]
    return [{name: value for name, value in epoch.items() if name != "seconds"} for epoch in epochs]


def test_nothing_is_predicted_from_the_gold_answer(fitted):
    name, predictor, _ = fitted
    no_answer = CASES[name].no_answer
    for example in CASES[name].examples:
        without = replace(example, **(no_answer(example) if callable(no_answer) else no_answer))
        assert shown(predictor.predict([without])[0]) == shown(predictor.predict([example])[0])
