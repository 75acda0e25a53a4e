"""Tables of benchmarks/parts.py, and the training of which it takes the time."""

import json

import parts
import pytest


def test_a_case_is_compared_with_the_seeds_of_one_part():
    found = {
        (1, None): [{"ndcg@1": 0.7, "mrr@10": 0.6}, {"ndcg@1": 0.8, "mrr@10": 0.6}],
        (4, 15): [{"ndcg@1": 0.74, "mrr@10": 0.62}],
    }
    _, one, four = parts.rows_of_quality(found)
    assert one == ["1", "-", "0.750", "0.600", "-", "-"]
    assert four == ["4", "15", "0.740", "0.620", "-0.010", "+0.020"]


def test_an_estimate_is_work_divided_and_what_meetings_add():
    one = {"wall": 100.0, "cpu": 190.0, "steps": 1000, "meetings": 0, "seconds": 0, "bytes": 0}
    two = one | {"meetings": 5, "seconds": 5.0, "bytes": 2.5e9}
    found = {way: [one if n == 0 else two] for n, way in enumerate(parts.WAYS)}
    _, first, *_ = parts.rows_of_times(found)
    assert first == [next(iter(parts.WAYS)), "100 s", "1.00", "190 s", "-", "-"]
    # Each part has 500 updates, 100 in each of 5 rounds, which take 10 s. The 250 MB of a part
    # travel twice, and its mean takes 0.5 s.
    _, row, *_ = parts.rows_of_estimates(found)
    together = 10 + 2 * (2 * 250e6 / parts.NETWORK + 0.5)
    assert row == ["2", "100", "250 MB", f"{20 / together:.1f}"]


@pytest.mark.slow
def test_every_way_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "BUILD", tmp_path)
    monkeypatch.setattr(parts, "TURNS", 1)
    found = json.loads(json.dumps(parts.times(8_000)))
    of_one, of_two, of_workers = (turns[0] for turns in found.values())
    assert of_one["meetings"] == 0 and of_two["meetings"] == of_workers["meetings"] == 5
    assert of_two["bytes"] == of_workers["bytes"] > 0
