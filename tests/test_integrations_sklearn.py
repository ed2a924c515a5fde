"""One contract for both vectorizers: scikit-learn's own rules, as far as they can be asked of text."""

import pickle

import numpy as np
import pandas
import polars
import pytest
from conftest import random_elmo
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import elmokit
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.integrations.sklearn import ElmoTokenVectorizer, ElmoVectorizer, token_samples

TEXTS = [
    "They sat upon the [bank] of the river.",
    "She had put her money in the [bank].",
    "He lay in the sun upon the grassy [bank] of the stream.",
    "He had a thousand pounds in the [bank] at London.",
    "The boat was tied to the [bank] of the river.",
    "The [bank] would lend him no more money.",
    "我们坐在河的[岸]边。",
    "[One]",
]
SENSES = np.array([0, 1, 0, 1, 0, 1, 0, 1])
CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_mixin_order,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_set_params,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_valid_tag_types,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sklearn") / "model"
    random_elmo().save(folder)
    return str(folder)


@pytest.fixture(params=[ElmoVectorizer, ElmoTokenVectorizer])
def vectorizer(request, folder):
    return request.param(folder)


class TestContract:
    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_rules_of_scikit_learn(self, vectorizer, check):
        check(type(vectorizer).__name__, vectorizer)

    def test_a_row_for_each_sample(self, vectorizer):
        found = vectorizer.fit_transform(TEXTS)
        assert found.shape == (len(TEXTS), vectorizer.elmo_.width)
        assert found.dtype == np.float32
        assert np.array_equal(found, vectorizer.fit(TEXTS).transform(TEXTS))
        assert vectorizer.transform([]).shape == (0, vectorizer.elmo_.width)

    def test_the_order_and_the_others_change_nothing(self, vectorizer):
        found = vectorizer.fit_transform(TEXTS)
        np.testing.assert_allclose(vectorizer.transform(TEXTS[::-1])[::-1], found, atol=2e-6)
        np.testing.assert_allclose(vectorizer.transform(TEXTS[2:3]), found[2:3], atol=2e-6)

    def test_fit_changes_no_parameters(self, vectorizer):
        before = vectorizer.get_params()
        assert vectorizer.fit(TEXTS) is vectorizer
        assert vectorizer.get_params() == before

    def test_clones_are_not_fitted(self, vectorizer):
        copy = clone(vectorizer.set_params(layers=1).fit(TEXTS))
        assert copy.get_params() == vectorizer.get_params()
        with pytest.raises(NotFittedError):
            copy.transform(TEXTS)
        with pytest.raises(NotFittedError):
            copy.get_feature_names_out()

    @pytest.mark.parametrize("layers", ["average", "top", 0, 1, 2])
    def test_layers(self, vectorizer, layers):
        found = vectorizer.set_params(layers=layers).fit_transform(TEXTS)
        others = [vectorizer.set_params(layers=other).fit_transform(TEXTS) for other in {0, 1, 2, "average"} - {layers}]
        assert len(others) == (4 if layers == "top" else 3)
        assert sum(np.allclose(found, other, atol=1e-4) for other in others) == (layers == "top")

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_tables(self, vectorizer, library):
        names = vectorizer.fit(TEXTS).get_feature_names_out()
        assert names[1] == f"{type(vectorizer).__name__.lower()}1"
        table = vectorizer.set_output(transform=library).fit_transform(TEXTS)
        assert list(table.columns) == list(names)
        np.testing.assert_array_equal(table.to_numpy(), vectorizer.set_output(transform="default").transform(TEXTS))

    def test_a_series_keeps_its_index(self, vectorizer):
        series = pandas.Series(TEXTS, index=list("abcdefgh"))
        table = vectorizer.set_output(transform="pandas").fit_transform(series)
        assert table.index.tolist() == list("abcdefgh")

    @pytest.mark.parametrize("column", [pandas.Series, polars.Series, np.array, tuple, iter])
    def test_columns(self, vectorizer, column):
        found = vectorizer.fit_transform(column(TEXTS))
        np.testing.assert_array_equal(found, vectorizer.transform(TEXTS))

    def test_pickles_hold_a_name_and_a_digest(self, vectorizer):
        content = pickle.dumps(vectorizer.fit(TEXTS))
        assert len(content) < 2000
        copy = pickle.loads(content)
        np.testing.assert_array_equal(copy.transform(TEXTS), vectorizer.transform(TEXTS))
        with pytest.raises(NotFittedError):
            pickle.loads(pickle.dumps(clone(vectorizer))).transform(TEXTS)

    def test_another_model_is_refused(self, vectorizer, tmp_path):
        random_elmo().save(tmp_path / "model")
        content = pickle.dumps(vectorizer.set_params(model=tmp_path / "model").fit(TEXTS))
        random_elmo(seed=1).save(tmp_path / "model", overwrite=True)
        with pytest.raises(CheckpointError, match="not the model that this was fitted with"):
            pickle.loads(content)

    def test_in_a_search_with_processes(self, vectorizer):
        pipeline = make_pipeline(vectorizer, LogisticRegression())
        name = pipeline.steps[0][0]
        settings = {f"{name}__layers": ["average", 2]}
        settings |= {f"{name}__pooling": ["mean", "max"]} if isinstance(vectorizer, ElmoVectorizer) else {}
        search = GridSearchCV(pipeline, settings, cv=2, n_jobs=2, error_score="raise").fit(TEXTS, SENSES)
        assert len(search.cv_results_["params"]) == 2 ** len(settings)
        assert search.predict(TEXTS).shape == SENSES.shape

    @pytest.mark.parametrize("samples", ["one text", None, np.array([TEXTS]), pandas.DataFrame({"text": TEXTS})])
    def test_a_single_text_or_a_table_is_refused(self, vectorizer, samples):
        with pytest.raises(ValueError, match="one column by its name"):
            vectorizer.fit(samples)
        with pytest.raises(DataError, match="one column by its name"):
            vectorizer.fit(TEXTS).transform(samples)

    @pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, 3])
    def test_a_missing_text_is_named(self, vectorizer, missing):
        with pytest.raises(DataError, match="1 is"):
            vectorizer.fit(TEXTS).transform([TEXTS[0], missing])

    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"model": "nowhere"}, r"no model of that name comes with elmokit \(en, zh\)"),
            ({"model": random_elmo()}, "expected a name or path"),
            ({"layers": 7}, "0 to 2"),
            ({"layers": "all"}, "'all' is not one"),
            ({"precision": "fp8"}, "fp32, int8"),
        ],
    )
    def test_wrong_settings(self, vectorizer, settings, told):
        with pytest.raises((ConfigError, CheckpointError), match=told):
            vectorizer.set_params(**settings).fit(TEXTS)


class TestTexts:
    def test_vectors_are_those_of_the_bundled_model(self):
        found = ElmoVectorizer().fit_transform(["He sat on the bank.", ["Ready", "made", "tokens"], ""])
        elmo = elmokit.load("en")
        np.testing.assert_array_equal(found, elmo.sentence_vectors(["He sat on the bank.", "Ready made tokens", ""]))
        assert not found[2].any()

    def test_pooling(self, folder):
        mean, largest = (ElmoVectorizer(folder, pooling=one).fit_transform(TEXTS) for one in ("mean", "max"))
        assert (largest >= mean - 1e-6).all()
        with pytest.raises(ConfigError, match="mean, max"):
            ElmoVectorizer(folder, pooling="sum").fit(TEXTS)


class TestWords:
    def test_brackets_and_positions_are_the_same(self, folder):
        elmo = elmokit.load(folder)
        tokens = elmo.tokens("They sat upon the bank of the river.")
        found = ElmoTokenVectorizer(folder).fit().transform([TEXTS[0], (tokens, 4), (tuple(tokens), np.int64(0))])
        np.testing.assert_allclose(found[0], elmo.vector(TEXTS[0]), atol=2e-6)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[2], elmo.embed([tokens])[0][0], atol=2e-6)

    def test_senses_of_a_word_are_told_apart(self):
        pipeline = make_pipeline(ElmoTokenVectorizer(layers="top"), LogisticRegression())
        assert cross_val_score(pipeline, TEXTS[:6], SENSES[:6], cv=3).mean() == 1

    def test_every_token_is_a_sample(self, folder):
        sentences = [["Dogs", "bark"], [], ["We", "bark", "too"]]
        samples = token_samples(sentences)
        assert [tokens[position] for tokens, position in samples] == ["Dogs", "bark", "We", "bark", "too"]
        found = ElmoTokenVectorizer(folder).fit_transform(samples)
        np.testing.assert_allclose(found, np.concatenate(elmokit.load(folder).embed(sentences)), atol=2e-6)

    @pytest.mark.parametrize("sample", [(["a"], 1), (["a"], -1), ("text", 0), (["a"], 0, 1), (["a"], "0"), ([], 0)])
    def test_wrong_pairs_are_named(self, folder, sample):
        with pytest.raises(DataError, match="sample 0 is"):
            ElmoTokenVectorizer(folder).fit().transform([sample])
