"""The epochs of a run: batches, rates, what is kept, what is written down, and how a run goes on."""

import random
from dataclasses import replace
from itertools import chain, pairwise

import msgspec
import pytest
from conftest import random_elmo
from test_tasks_contract import ENTITIES, ROLES, STORIES, StopsAfter, tagged
from test_tasks_fit import PLAIN, Told, report, static_vectors, train

from elmokit.errors import CheckpointError, ConfigError
from elmokit.tasks import TASKS, FitOptions, FitSettings, InputSettings, fit
from elmokit.tasks.loop import EpochReport, batches, best_of, stalls
from elmokit.tasks.tagging import Settings
from elmokit.tasks.task import Item
from elmokit.tasks.training import get_task
from elmokit.text.tokenizers import get_tokenizer

NOTHING = [tagged("nothing/O here/O")]  # without an entity F1 is 0 whatever is learned


def epochs(*scores):
    return [
        EpochReport(number=number, loss=1.0, rate=0.1, scores={"f1": score}, mixes=[], seconds=1.0)
        for number, score in enumerate(scores, 1)
    ]


def trained_epochs(folder):
    return msgspec.convert(report(folder)["epochs"], list[EpochReport])


def item(tokens, runs=1):
    return Item(None, (("word",) * tokens,), runs=runs)


class StopsAfterAnEpoch(Told):
    """A user who has seen enough."""

    def message(self, text):
        if text.startswith("epoch "):
            raise KeyboardInterrupt


class TestBatches:
    def test_are_of_like_length_and_hold_every_item_once(self):
        items = [item(tokens) for tokens in random.Random(0).sample(range(1, 60), 50)]
        found = batches(items, FitSettings(batch=8, batch_tokens=100), random.Random(1))
        assert sorted(map(id, items)) == sorted(id(one) for batch in found for one in batch)
        lengths = sorted([[len(one.sentences[0]) for one in batch] for batch in found], reverse=True)
        flat = list(chain.from_iterable(lengths))
        assert flat == sorted(flat, reverse=True)
        assert all(len(batch) <= 8 and (sum(batch) <= 100 or len(batch) == 1) for batch in lengths)

    def test_a_sentence_counts_once_for_each_of_its_runs(self):
        items = [item(10, runs=3), item(9, runs=3), item(8), item(7), item(6, runs=100)]
        found = batches(items, FitSettings(batch_tokens=45), random.Random(1))
        assert sorted([[len(one.sentences[0]) for one in batch] for batch in found]) == [[6], [9, 8, 7], [10]]

    def test_are_drawn_anew(self):
        items = [item(5) for _ in range(50)]
        one, same, other = (batches(items, FitSettings(batch=5), random.Random(seed)) for seed in (1, 1, 2))
        assert [list(map(id, batch)) for batch in one] == [list(map(id, batch)) for batch in same]
        assert [list(map(id, batch)) for batch in one] != [list(map(id, batch)) for batch in other]

    def test_roles_are_learned_in_a_run_for_each_predicate(self):
        prepare = get_task("srl").prepare
        cut = get_tokenizer("words")
        assert prepare(ROLES[0], cut).runs == 2
        assert prepare(replace(ROLES[0], frames=()), cut).runs == 1


class TestRates:
    @pytest.mark.parametrize(
        ("scores", "expected"),
        [
            ([], 0),
            ([0.5, 0.4], 0),
            ([0.5, 0.4, 0.5], 1),  # as good as the best is not a new best
            ([0.5, 0.4, 0.3, 0.2], 1),
            ([0.5, 0.4, 0.3, 0.2, 0.1], 2),
            ([0.5, 0.4, 0.6, 0.5, 0.7, 0.6, 0.8], 0),  # dips that come to nothing
            ([0.5, 0.4, 0.3, 0.6, 0.5, 0.4], 2),
            ([0.0, 0.0, 0.0, 0.0, 0.1], 0),
            ([0.0, 0.0, 0.1, 0.0, 0.0], 1),
        ],
    )
    def test_stalls(self, scores, expected):
        assert stalls(epochs(*scores)) == expected

    def test_the_rate_falls_when_the_score_does_not_rise(self, tmp_path):
        training = {"learning_rate": 0.3, "epochs": 12, "patience": 12, "anneal": 0.5}
        train(tmp_path / "task", training=training)
        done = trained_epochs(tmp_path / "task")
        expected = [0.3 * max(1 / 16, 0.5 ** stalls(done[:number])) for number in range(len(done))]
        assert [epoch.rate for epoch in done] == expected
        assert done[-1].rate < 0.3

    def test_the_rate_falls_to_a_sixteenth_at_most(self, tmp_path):
        training = {"learning_rate": 1e-9, "epochs": 13, "patience": 13, "anneal": 0.5}
        train(tmp_path / "task", training=training)
        done = trained_epochs(tmp_path / "task")
        assert stalls(done) > 5
        assert [round(1e-9 / epoch.rate) for epoch in done] == [1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16]


class TestBest:
    def test_the_first_with_the_highest_score(self):
        assert best_of(epochs(0.1, 0.7, 0.3, 0.7)).number == 2

    def test_the_last_while_all_score_0(self):
        assert best_of(epochs(0.0, 0.0, 0.0)).number == 3
        assert best_of(epochs(0.0, 0.1, 0.0)).number == 2

    def test_the_latest_weights_are_kept_while_the_score_is_0(self, tmp_path):
        for count in (1, 3):
            train(tmp_path / str(count), dev=NOTHING, training={"epochs": count})
        assert report(tmp_path / "3")["best"] == 3
        first, third = ((tmp_path / str(count) / "task.safetensors").read_bytes() for count in (1, 3))
        assert first != third


class TestReport:
    def test_the_share_of_the_data(self, tmp_path):
        train(tmp_path / "part", sample=0.25)
        train(tmp_path / "whole")
        assert [report(tmp_path / name)["sample"] for name in ("part", "whole")] == [0.25, 1.0]


class TestResume:
    def test_more_epochs_and_more_patience(self, tmp_path):
        """A finished run that goes on ends as one that was never stopped."""
        train(tmp_path / "whole", training={"epochs": 5, "patience": 4})
        train(tmp_path / "parts", training={"epochs": 2, "patience": 2})
        train(tmp_path / "parts", training={"epochs": 5, "patience": 4}, resume=True)
        whole, parts = ((tmp_path / name / "task.safetensors").read_bytes() for name in ("whole", "parts"))
        assert whole == parts
        written = report(tmp_path / "parts")
        assert (len(written["epochs"]), written["training"]["epochs"]) == (5, 5)

    def test_something_else_is_refused_by_its_name(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "task", progress=StopsAfter(1))
        with pytest.raises(ConfigError, match=r"settings\.hidden was 8 and is 9$"):
            train(tmp_path / "task", settings=Settings(hidden=9), resume=True)
        with pytest.raises(ConfigError, match=r'mix was "learned" and is "last"; .*_dropout was 0.5 and is 0.0$'):
            train(tmp_path / "task", inputs=PLAIN | {"mix": "last"}, resume=True)
        with pytest.raises(ConfigError, match=r"training\.batch was 4 and is 5; training\.seed was 0 and is 2$"):
            train(tmp_path / "task", training={"batch": 5, "seed": 2, "epochs": 9}, resume=True)
        with pytest.raises(ConfigError, match=r'data was "\w+" and is "\w+"$'):
            train(tmp_path / "task", examples=[*ENTITIES, ENTITIES[0]], resume=True)
        with pytest.raises(ConfigError, match=r"data was .*; sample was 1.0 and is 0.5$"):
            train(tmp_path / "task", sample=0.5, resume=True)
        with pytest.raises(ConfigError, match=r'embedders\.0\.digest was "\w+" and is "\w+"$'):
            train(tmp_path / "task", {"elmo": random_elmo(seed=4)}, resume=True)
        with pytest.raises(CheckpointError, match="no trained task"):
            train(tmp_path / "nothing", resume=True)


class TestDefaultsOfATask:
    def test_are_settings_of_the_loop(self):
        for task in TASKS.values():
            assert isinstance(task.training_from({}), FitSettings)
        assert get_task("coref").training_from({}) == FitSettings(batch=1)
        assert get_task("coref").training_from({"batch": 32, "epochs": 3}) == FitSettings(epochs=3)

    @pytest.mark.parametrize(("training", "steps"), [(None, [1, 2]), (FitSettings(), [2])])
    def test_are_taken_where_nothing_is_said(self, training, steps, tmp_path):
        """Coreference learns from a document a step."""
        told, two, options = StopsAfterAnEpoch(), STORIES[:2], FitOptions(training=training)
        with pytest.raises(KeyboardInterrupt):
            fit("coref", two, two, {"a": static_vectors()}, tmp_path / "task", options, progress=told)
        assert [done for _, done, _ in told.updates] == steps

    def test_inputs_that_a_task_does_not_take(self, tmp_path):
        vectors = {"words": static_vectors()}
        with pytest.raises(ConfigError, match="probe sees each layer as it is: it takes no settings of the inputs"):
            fit("probe", ENTITIES, ENTITIES, vectors, tmp_path / "task", FitOptions(inputs=InputSettings(mix="last")))
        assert not (tmp_path / "task").exists()


class TestStreams:
    def test_the_first_answers_come_before_all_is_asked(self, tmp_path):
        predictor, taken = train(tmp_path / "task", training={"epochs": 1}), []

        def texts():
            for number in range(600):
                taken.append(number)
                yield "London"

        waited = [len(taken) for _ in predictor.predict_stream(texts())]
        assert waited[:7] == [1, 3, 3, 7, 7, 7, 7]
        assert waited[-1] == len(waited) == 600
        assert max(after - before for before, after in pairwise(waited)) == 256
