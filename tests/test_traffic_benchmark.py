"""The tables of `benchmarks/traffic.py`."""

from traffic import of_kinds


def seed_with(**figures):
    kind = {"name": "never typed before", "n_queries": 2}
    figures = {name: {"hit": hit, "mrr": 1.0} for name, hit in figures.items()}
    return {"kinds": [{**kind, "figures": figures}]}


def test_a_part_without_a_weight_for_one_seed_has_no_figure():
    seeds = [seed_with(cosine=0.5, sentemb=0.25), seed_with(cosine=1.0, memory=0.5, sentemb=0.75)]
    assert of_kinds(seeds)[3:] == [
        "| sentemb | 0.500 / 1.000 |",
        "| cosine | 0.750 / 1.000 |",
        "| memory | - |",
    ]
