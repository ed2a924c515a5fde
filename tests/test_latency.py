"""`elmokit bench --latency`."""

import pytest

from elmokit import latency
from elmokit.cli import app


def test_shapes_are_of_real_words_in_order():
    words = "a b c d e f g".split()
    assert latency.shaped(words, 2, 3) == [["a", "b", "c"], ["d", "e", "f"]]
    assert latency.shaped(words, 3, 4) == [["a", "b", "c", "d"], ["e", "f", "g", "a"], ["b", "c", "d", "e"]]


def test_row():
    found = latency.Latency("fp32", 2, 8, 20, [0.001, 0.002, 0.003])
    assert found.row().startswith("| fp32 | 2 | 8 | 20 | 2.00 ms | ")
    assert found.row().endswith(" | 1.00 ms |")


def test_every_shape_on_one_thread_and_on_two(model_folder, capsys, monkeypatch):
    monkeypatch.setattr(latency, "SHAPES", ((1, 5), (3, 4)))
    monkeypatch.setattr(latency, "find_spec", lambda _: None)  # without onnxruntime
    app(["bench", "-m", str(model_folder), "--latency", "--precisions", "fp32"])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| elmokit fp32")]
    assert [row[1:4] for row in rows] == [["1", "1", "5"], ["1", "3", "4"], ["2", "1", "5"], ["2", "3", "4"]]


def test_calls_again_until_the_time_is_up(monkeypatch):
    calls = []
    assert len(latency.repeated(lambda: calls.append(1))) == len(calls) == latency.BEST_OF
    monkeypatch.setattr(latency, "SECONDS", 0.0)
    assert len(latency.repeated(lambda: None)) == 2


def test_onnxruntime_beside_it(model_folder):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    found = list(latency.measure_latency(str(model_folder), ["fp32"], "The bank of the river".split()))
    assert len(found) == 2 * 2 * len(latency.SHAPES)
    assert {one.name for one in found} == {"elmokit fp32", "onnxruntime"}
