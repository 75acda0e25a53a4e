"""Splitting a click log: sides, files, bounded memory, all or nothing."""

import contextlib
import functools
import hashlib
import io
import itertools
import json
import os
import random
import re
import shutil
import sys
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import failing_calls, tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sentemb
from sentemb import SentembError, split_log
from sentemb.cli import main
from sentemb.data import splitting
from sentemb.data.click_log import ClickLogBuilder, read_click_log, write_click_log
from sentemb.data.distinct_texts import DistinctTexts
from sentemb.data.judged_set import read_texts
from sentemb.data.seen_queries import in_log
from sentemb.data.split_description import SPLIT, held_out_by, split_warning
from sentemb.data.splitting import hold_out_clicks, is_share, share_of, split_file
from sentemb.search.title_files import read_titles
from sentemb.text.words import query_key

WAYS = ("query", "title", "click", "both", "time")
HALF = {"dev": 0.25, "test": "25%"}


def lines_of(n_lines, seed=0):
    """Lines of a log with repeated queries, in several spellings, and repeated titles."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n_lines):
        number = rng.randrange(n_lines // 3)
        query = rng.choice([f"Hotel {number}", f"hotel  {number}", f" HOTEL {number}"])
        columns = [query, f"Title {rng.randrange(n_lines // 4)}"]
        columns += [str(rng.randrange(1, 4))] if rng.random() < 0.5 else []
        lines.append("\t".join(columns) + "\n")
    return lines


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("".join(lines_of(300)))
    return path


@pytest.mark.parametrize("by", WAYS)
def test_the_ids_of_titles_stay(tmp_path, by):
    """Each side has the id of a title wherever the log has one; the sides are those without."""
    path, bare = tmp_path / "log.tsv", tmp_path / "bare.tsv"
    lines = [
        [f"query {k}", f"Title {k % 7}", str(1 + k % 3), *([f"id{k % 7}"] if k % 4 else [])]
        for k in range(200)
    ]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    bare.write_text("".join("\t".join(line[:3]) + "\n" for line in lines))
    for log, out in ((path, "ids"), (bare, "none")):
        split_file(log, tmp_path / out, **HALF, by=by)
    ids = {(query, title): id for query, title, _, id, *_ in (line + [""] for line in lines)}
    for name in ("pairs.tsv", "dev.tsv", "test.tsv"):
        with_ids = [line.split("\t") for line in (tmp_path / "ids" / name).read_text().splitlines()]
        assert read_click_log(tmp_path / "ids" / name).titles
        for query, title, *rest in with_ids:
            assert "".join(rest[1:]) == ids[query, title]
        columns = [(*line[:2], line[2] if len(line) > 2 else "1") for line in with_ids]
        without = [line.split("\t") for line in (tmp_path / "none" / name).read_text().splitlines()]
        assert columns == [(*line[:2], line[2] if len(line) > 2 else "1") for line in without]


def pairs_of(log):
    """Pairs with their clicks and skipped titles, in order."""
    if log is None:
        return []
    found = []
    for p, (q, t, clicks) in enumerate(
        zip(log.query_index, log.title_index, log.clicks, strict=True)
    ):
        skipped = log.skipped_index[log.skipped_offsets[p] : log.skipped_offsets[p + 1]]
        texts = [log.titles[s] for s in skipped]
        found.append((log.queries[q], log.titles[t], int(clicks), texts))
    return found


def written(folder):
    """What is in the files of a split, as `split_log` returns it."""
    logs = []
    for name in ("pairs", "dev", "test"):
        files = [folder / f"{name}.{ending}" for ending in ("tsv", "jsonl")]
        there = [file for file in files if file.exists()]
        logs.append(read_click_log(there[0]) if there else None)
    return logs


def naive_side(text, dev, test, seed):
    """The side of a text by exact fractions of the hash."""
    words = " ".join(sorted(set(text.lower().split()))).encode()
    salt = seed.to_bytes(8, "little")
    number = int.from_bytes(hashlib.blake2b(words, digest_size=8, salt=salt).digest(), "big")
    if number < test * 2**64:
        return 2
    return 1 if number >= (1 - dev) * 2**64 else 0


# -- sides -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["query", "title"])
@pytest.mark.parametrize(("dev", "test", "seed"), [(0.25, 0.5, 0), (0.5, 0, 7), (0, 0.125, 2**62)])
def test_sides_are_those_of_the_hash(log, by, dev, test, seed):
    parts = split_log(log, dev, test, by, seed)
    for side, part in enumerate(parts):
        for query, title, _, _ in pairs_of(part):
            assert naive_side(query if by == "query" else title, dev, test, seed) == side
    found = [pair[:3] for part in parts for pair in pairs_of(part)]
    assert sorted(found) == sorted(pair[:3] for pair in pairs_of(read_click_log(log)))
    assert [part is None for part in parts] == [False, not dev, not test]


@pytest.mark.parametrize("by", WAYS)
def test_path_log_and_files_have_the_same_sides(log, tmp_path, by):
    seed = 0 if by == "time" else 3
    from_path = split_log(log, **HALF, by=by, seed=seed)
    split_file(log, tmp_path / "out", **HALF, by=by, seed=seed)
    assert [*map(pairs_of, from_path)] == [*map(pairs_of, written(tmp_path / "out"))]
    if by in ("query", "title"):  # a log in memory no longer knows the lines of a pair
        in_memory = split_log(read_click_log(log), **HALF, by=by, seed=seed)
        assert [*map(pairs_of, in_memory)] == [*map(pairs_of, from_path)]


def spellings(text):
    """Texts that a shop's log has for one query."""
    words = text.split()
    full_width = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in text)
    return [
        text, text.upper(), f" {text.title()}\t ", f'"{text}"', f"{text}?", " / ".join(words),
        " ".join(words[::-1]), f"{text} {words[0]}", full_width, "\u00ad".join(text),
        text.replace("e", "e\u0301"), text.replace("e", "\xe9"),
    ]  # fmt: skip


def test_no_spelling_of_a_query_is_on_another_side():
    builder = ClickLogBuilder()
    for number in range(200):
        for query in spellings(f"paris hotel near station {number}"):
            builder.add(query, f"title {number}")
    parts = split_log(builder.build(), **HALF)
    numbers = [{re.sub(r"[^0-9]", "", query) for query in part.queries} for part in parts]
    assert sum(map(len, numbers)) == 200
    assert all(len(one) >= 30 for one in numbers)
    train, dev, test = parts
    for held_out in (dev, test):
        assert not in_log(held_out.queries, train.queries).any()


def messy_shop(seed=0):
    """Clicks of a shop in which every query is typed in many ways, the frequent ones in more."""
    rng = random.Random(seed)
    things = [f"{size} {what} {k}" for k in range(60) for size, what in
              itertools.product(("small", "large"), ("drill", "cafetiere", "hose"))]  # fmt: skip
    weights = [1 / (1 + place) for place in range(len(things))]
    for thing in rng.choices(things, weights, k=6000):
        yield rng.choice(spellings(thing)), f"the {thing}"


def test_nothing_leaks_from_the_log_of_a_messy_shop(tmp_path):
    lines = [f"{query.strip()}\t{title}" for query, title in messy_shop()]
    (tmp_path / "log.tsv").write_text("\n".join(lines) + "\n")
    for seed in range(3):
        split_file(tmp_path / "log.tsv", tmp_path / "out", "10%", "10%", seed=seed, force=True)
        train, dev, test = written(tmp_path / "out")
        for one, other in itertools.combinations((train, dev, test), 2):
            assert not in_log(one.queries, other.queries).any()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\N{LATIN SMALL LIGATURE FI}le 10", "10 file"),
        ("I\u011eDIR", "\u0131\u011fd\u0131r"),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03cc\u03c2"),
        ("STRASSE", "stra\xdfe"),
        ("c++, c#", "c"),
        ("x\u00b2", "x2"),
        ("\u30ab\u3099", "\u30ac"),
        ("a_b", "a-b"),
    ],
)
def test_texts_with_the_same_key(one, other):
    assert query_key(one) == query_key(other)


@settings(max_examples=300)
@given(st.text(min_size=1))
def test_a_key_is_its_own_key_and_never_empty(text):
    key = query_key(text)
    assert key and query_key(key) == key


def test_texts_with_other_words_have_other_keys():
    texts = [
        "rome",
        "rom",
        "rome 1",
        "rome 11",
        "\u30ab",
        "\u30ac\u30ad",
        "?",
        "??",
        "\u2615",
        "ro me",
    ]
    assert len({*map(query_key, texts)}) == len(texts)


def test_the_split_says_how_it_was_made_and_another_is_warned_of(log, tmp_path):
    out = tmp_path / "out"
    counts = split_file(log, out, **HALF, seed=7)
    told = json.loads((out / SPLIT).read_text())
    assert told == {
        "format": 1, "rule": "distinct words", "dev": 0.25, "test": 0.25, "by": "query", "seed": 7,
        "lines": [*counts.lines], "clicks": [*counts.clicks], "held_out": [*counts.held_out],
        "titles": counts.titles, "added": counts.added, "bad_lines": 0, "has_repeats": None,
    }  # fmt: skip
    assert split_warning(out / "test.tsv") is None
    (out / SPLIT).write_text(json.dumps({"format": 1, "rule": "raw text"}))
    assert "has another rule" in split_warning(out / "dev.tsv")
    for by, is_warned in (("click", False), ("time", False), ("title", True)):
        (out / SPLIT).write_text(json.dumps({"format": 1, "rule": "raw text", "by": by}))
        assert (split_warning(out / "dev.tsv") is not None) == is_warned
    for text in ("{", "[]", '{"format": 2}', '{"format": "1"}'):
        (out / SPLIT).write_text(text)
        with pytest.raises(SentembError, match=r"split\.json: "):
            split_warning(out / "dev.tsv")
    (out / SPLIT).unlink()
    assert "split.json is missing, so its queries may" in split_warning(out / "test.tsv")
    assert split_warning(out / "pairs.tsv") is None
    # A published set has its parts from elsewhere, and says so.
    (out / "README.md").touch()
    assert split_warning(out / "test.tsv") is None


@pytest.mark.parametrize("by", WAYS)
def test_a_held_out_file_says_how_it_was_held_out(log, tmp_path, by):
    out = tmp_path / "out"
    split_file(log, out, **HALF, by=by)
    assert [held_out_by(out / name) for name in ("dev.tsv", "test.tsv")] == [by, by]
    assert held_out_by(out / "pairs.tsv") is None and held_out_by(log) is None
    (out / SPLIT).write_text(json.dumps({"format": 1, "rule": "distinct words"}))
    assert held_out_by(out / "dev.tsv") is None
    (out / SPLIT).write_text("{")
    with pytest.raises(SentembError, match=r"split\.json: "):
        held_out_by(out / "dev.tsv")
    (out / SPLIT).unlink()
    assert held_out_by(out / "dev.tsv") is None


def test_evaluate_warns_of_a_split_by_an_unknown_rule(log, tmp_path, model_dir):
    split_file(log, tmp_path / "out", **HALF)
    (tmp_path / "out" / SPLIT).unlink()
    evaluate = ["evaluate", model_dir, str(tmp_path / "out" / "test.tsv")]
    result = CliRunner().invoke(main, evaluate)
    assert result.exit_code == 0
    assert "may have been in training in another spelling" in result.stderr
    result = CliRunner().invoke(main, [*evaluate, "--log", str(tmp_path / "out" / "pairs.tsv")])
    assert "another spelling; split" not in result.stderr
    assert ", with 0.0% of the clicks, are also in" in result.stderr


def test_a_growing_log_and_other_shares_keep_the_sides(tmp_path):
    lines = lines_of(600)
    (tmp_path / "a").write_text("".join(lines[:300]))
    (tmp_path / "b").write_text("".join(lines))
    before, after = (split_log(tmp_path / name, dev=0.2, test=0.2) for name in "ab")
    for one, other in zip(before, after, strict=True):
        assert set(one.queries) <= set(other.queries)
    more_dev = split_log(tmp_path / "b", dev=0.4, test=0.2)
    assert pairs_of(more_dev[2]) == pairs_of(after[2])
    assert set(after[1].queries) < set(more_dev[1].queries)
    assert split_log(tmp_path / "b", seed=1)[2].queries != split_log(tmp_path / "b")[2].queries


def test_by_title_no_held_out_title_is_met_in_training(tmp_path):
    rng = random.Random(1)
    records = [
        {
            "query": f"q{rng.randrange(80)}",
            "clicked": [f"T{rng.randrange(40)}", f"T{40 + rng.randrange(9)}"],
            "clicks": [rng.randrange(1, 3), 1],
            "skipped": [f"T{rng.randrange(60)}", f"S{rng.randrange(9)}"],
        }
        for _ in range(200)
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    for parts in (
        split_log(tmp_path / "log.jsonl", **HALF, by="title"),
        split_log(read_click_log(tmp_path / "log.jsonl"), **HALF, by="title"),
    ):
        train, dev, test = parts
        for held_out in (dev, test):
            assert not {*train.titles} & {*held_out.titles}
            assert held_out.skipped_index.size == 0
        assert train.skipped_index.size > 100
    split_file(tmp_path / "log.jsonl", tmp_path / "out", **HALF, by="title")
    assert pairs_of(written(tmp_path / "out")[0]) == pairs_of(
        split_log(tmp_path / "log.jsonl", **HALF, by="title")[0]
    )


def test_by_query_skipped_titles_are_kept(tmp_path):
    builder = ClickLogBuilder()
    for number in range(60):
        builder.add(f"q{number}", f"T{number}", 1 + number % 2, [f"S{number}", f"T{number + 1}"])
    write_click_log(builder.build(), tmp_path / "log.jsonl")
    whole = {pair[0]: pair for pair in pairs_of(builder.build())}
    split_file(tmp_path / "log.jsonl", tmp_path / "out", **HALF)
    assert sorted(os.listdir(tmp_path / "out")) == [
        "dev.tsv", "files.json", "pairs.jsonl", "split.json", "test.tsv", "titles.tsv",
    ]  # fmt: skip
    train, dev, test = written(tmp_path / "out")
    assert all(pair == whole[pair[0]] for pair in pairs_of(train))
    assert all(pair == (*whole[pair[0]][:3], []) for part in (dev, test) for pair in pairs_of(part))
    assert len(pairs_of(train)) + len(pairs_of(dev)) + len(pairs_of(test)) == 60
    _, titles = read_texts(tmp_path / "out" / "titles.tsv")
    assert titles == builder.build().titles


def test_by_time_the_last_lines_are_test(log, tmp_path):
    counts = split_file(log, tmp_path / "out", dev="10%", test=0.2, by="time")
    assert counts.lines == (210, 30, 60)
    files = [(tmp_path / "out" / f"{name}.tsv").read_text() for name in ("pairs", "dev", "test")]
    assert [text.count("\n") for text in files] == [210, 30, 60]
    clean = ["\t".join(part.strip() for part in line.split("\t")) for line in lines_of(300)]
    assert "".join(files).splitlines() == [line.removesuffix("\t1") for line in clean]


# -- single clicks ---------------------------------------------------------------------------------


def counted(log):
    """Clicks by pair."""
    return {pair[:2]: pair[2] for pair in pairs_of(log)}


@st.composite
def logs(draw):
    """Click logs of few texts, with counts from one to huge and with skipped titles."""
    text = st.sampled_from("abcdef")
    counts = st.integers(1, 30) | st.just(10**10)
    rows = st.tuples(text, text, counts, st.lists(text, max_size=3))
    builder = ClickLogBuilder()
    for row in draw(st.lists(rows, min_size=1, max_size=30)):
        builder.add(*row)
    return builder.build()


@given(logs(), st.floats(0, 0.99), st.integers(0, 2**63 - 1), st.integers(1, 8))
def test_held_out_clicks_are_of_queries_that_keep_some(log, share, seed, most):
    stays, held_out = hold_out_clicks(log, share, seed, most)
    both = Counter(counted(stays))
    both.update(counted(held_out))
    assert both == counted(log)
    assert stays.queries and set(held_out.queries) <= set(stays.queries) == set(log.queries)
    assert len(held_out.queries) <= most and not held_out.skipped_index.size
    skipped = {(query, title): texts for query, title, _, texts in pairs_of(log)}
    assert all(skipped[query, title] == texts for query, title, _, texts in pairs_of(stays))
    again = hold_out_clicks(log, share, seed, most)
    assert [*map(pairs_of, again)] == [pairs_of(stays), pairs_of(held_out)]
    for part in (stays, held_out):  # its texts are in the order of a log that is read
        builder = ClickLogBuilder()
        for query, title, clicks, skipped in pairs_of(part):
            builder.add(query, title, clicks, skipped)
        read = builder.build()
        assert (read.queries, read.titles) == (part.queries, part.titles)


TEXTS = st.sampled_from(["a", "b", "c", "Ä b", 'the "d"'])
LINES = st.builds(
    lambda query, clicked, clicks, skipped: json.dumps(
        {"query": query, "clicked": [clicked], "clicks": [clicks], "skipped": skipped}
    ),
    TEXTS,
    TEXTS,
    st.integers(1, 4) | st.just(10**10),
    st.lists(TEXTS, max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(LINES, min_size=1, max_size=30),
    st.sampled_from([(0.3, 0.3), (0, 0.5), (0.5, 0), (0.05, 0.9)]),
    st.integers(0, 2**63 - 1),
    st.sampled_from(["click", "both"]),
)
def test_by_click_no_click_is_lost_and_none_is_skipped(tmp_path, lines, shares, seed, by):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    whole = read_click_log(path)
    try:
        parts = split_log(path, *shares, by=by, seed=seed)
    except SentembError:
        with pytest.raises(SentembError, match="no line is on the"):
            split_file(path, tmp_path / "out", *shares, by=by, seed=seed, force=True)
        return
    total = Counter()
    for part in parts:
        total.update(counted(part))
    assert total == counted(whole)
    skipped = {(query, text) for query, _, _, texts in pairs_of(parts[0]) for text in texts}
    assert not skipped & set(counted(whole))
    assert not any(part.skipped_index.size for part in parts[1:] if part)

    counts = split_file(path, tmp_path / "out", *shares, by=by, seed=seed, force=True)
    assert [*map(pairs_of, written(tmp_path / "out"))] == [*map(pairs_of, parts)]
    sums = [sum(counted(part).values()) if part else 0 for part in parts]
    assert [*counts.clicks] == sums
    assert counts.has_repeats == (max(counted(whole).values()) > 1)
    again = split_file(path, tmp_path / "again", *shares, by=by, seed=seed, force=True)
    assert again == counts and tree(tmp_path / "again") == tree(tmp_path / "out")


def test_by_both_whole_queries_and_clicks_of_the_others_are_held_out(tmp_path):
    """The whole queries are those of a split by query."""
    lines = [f"q{n % 120}\tt{n % 7}\t{1 + n % 40}\n" for n in range(840)]
    (tmp_path / "log.tsv").write_text("".join(lines))
    whole = Counter(counted(read_click_log(tmp_path / "log.tsv")))
    by_query = split_log(tmp_path / "log.tsv", **HALF, by="query")
    parts = split_log(tmp_path / "log.tsv", **HALF, by="both")
    assert [set(part.queries) for part in by_query[1:]] == [
        set(part.queries) - set(parts[0].queries) for part in parts[1:]
    ]
    for of_query, part in zip(by_query[1:], parts[1:], strict=True):
        assert counted(of_query).items() <= counted(part).items()
    # Of the others each click is drawn with the share.
    expected = 0.25 * sum(counted(by_query[0]).values())
    for of_query, part in zip(by_query[1:], parts[1:], strict=True):
        single = int(part.clicks.sum() - of_query.clicks.sum())
        assert abs(single - expected) < 4 * np.sqrt(0.75 * expected)
    assert sum((Counter(counted(part)) for part in parts), Counter()) == whole


def test_by_click_the_shares_are_those_of_clicks_and_independent(tmp_path):
    lines = [f"q{number % 500}\tt{number % 7}\t{1 + number % 40}\n" for number in range(5000)]
    (tmp_path / "log.tsv").write_text("".join(lines))
    clicks = np.array([int(line.split("\t")[2]) for line in lines])
    parts = split_log(tmp_path / "log.tsv", 0.05, 0.2, by="click")
    for share, part in zip((0.75, 0.05, 0.2), parts, strict=True):
        deviation = np.sqrt(clicks.sum() * share * (1 - share))
        assert abs(part.clicks.sum() - clicks.sum() * share) < 4 * deviation
    # Independent clicks: the spread of the counts around their share is that of a binomial.
    whole = counted(read_click_log(tmp_path / "log.tsv"))
    found = counted(parts[2])
    total = np.array([*whole.values()])
    test = np.array([found.get(pair, 0) for pair in whole])
    dispersion = np.mean((test - 0.2 * total) ** 2 / (total * 0.2 * 0.8))
    assert abs(dispersion - 1) < 4 * np.sqrt(2 / len(whole))


def test_by_click_a_longer_log_and_another_share_of_dev_keep_what_was_drawn(tmp_path):
    lines = [line for line in lines_of(600) if line.count("\t") == 2]
    (tmp_path / "a").write_text("".join(lines[:200]))
    (tmp_path / "b").write_text("".join(lines))
    before, after = (split_log(tmp_path / name, **HALF, by="click") for name in "ab")
    for one, other in zip(before, after, strict=True):
        assert all(counted(other)[pair] >= clicks for pair, clicks in counted(one).items())
    less_dev = split_log(tmp_path / "b", dev=0.05, test=0.25, by="click")
    assert pairs_of(less_dev[2]) == pairs_of(after[2])
    other_seed = split_log(tmp_path / "b", **HALF, by="click", seed=1)
    assert pairs_of(other_seed[2]) != pairs_of(after[2])


def test_by_click_a_bad_line_does_not_move_the_draws(tmp_path):
    """A title that a file of titles cannot hold is a bad line of `split_file` alone."""
    lines = [json.dumps({"query": f"q{n}", "clicked": ["t"], "clicks": [9]}) for n in range(99)]
    bad = json.dumps({"query": "q", "clicked": ['"Acme 15.6"" Laptop"'], "clicks": [100]})
    (tmp_path / "log.jsonl").write_text("\n".join([bad, *lines]))
    parts = split_log(tmp_path / "log.jsonl", **HALF, by="click")
    split_file(tmp_path / "log.jsonl", tmp_path / "out", **HALF, by="click", skip_bad_lines=True)
    for part, found in zip(parts, written(tmp_path / "out"), strict=True):
        assert [pair for pair in pairs_of(part) if pair[0] != "q"] == pairs_of(found)


def test_by_click_a_log_without_counts_is_noted(tmp_path):
    (tmp_path / "ones.tsv").write_text("".join(f"q{n}\tt{n % 9}\n" for n in range(200)))
    # A line for each click is a log with counts.
    (tmp_path / "lines.tsv").write_text("".join(f"q{n % 9}\tt{n % 9}\n" for n in range(200)))
    for name, is_noted in (("ones", True), ("lines", False)):
        arguments = ["split", str(tmp_path / f"{name}.tsv"), "-o", str(tmp_path / name)]
        result = CliRunner().invoke(main, [*arguments, "--by", "click", "--test", "20%"])
        assert result.exit_code == 0
        assert ("no pair of the log has more than one click" in result.stderr) == is_noted
        assert "clicks to train, " in result.stdout and "a pair may be on several" in result.stdout
    _, _, test = written(tmp_path / "ones")
    assert set(test.clicks) == {1} and 20 < len(test.clicks) < 60


def test_every_click_is_held_out_with_the_share_whatever_its_pair():
    builder = ClickLogBuilder()
    for number in range(2000):
        builder.add(f"q{number}", "often", 50)
        builder.add(f"q{number}", "seldom", 2)
    stays, held_out = hold_out_clicks(builder.build(), 0.1, 0, 10**6)
    for title, clicks in (("often", 100_000), ("seldom", 4000)):
        found = sum(count for (_, t), count in counted(held_out).items() if t == title)
        assert abs(found - 0.1 * clicks) < 4 * np.sqrt(0.09 * clicks)
    assert len(stays.queries) == 2000 and pairs_of(held_out) != pairs_of(
        hold_out_clicks(builder.build(), 0.1, 1, 10**6)[1]
    )
    few, other = (hold_out_clicks(builder.build(), 0.1, seed, 40)[1].queries for seed in (0, 1))
    assert len(few) == len(other) == 40 and set(few) != set(other)


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["query", "click", "time"])
def test_what_is_written_is_read_back_whatever_comes_first(tmp_path, by):
    """A pair that is like column names has a count where it is line 1, and only there."""
    pairs = [f"query {number}\ttitle {number}" for number in range(30)]
    for place in range(30):
        lines = [*pairs[:place], "search\tpage\t1", *pairs[place:]]
        (tmp_path / "log.tsv").write_text("\n".join(lines) + "\n")
        split_file(tmp_path / "log.tsv", tmp_path / "out", 0.3, 0.3, by, force=True)
        parts = [tmp_path / "out" / name for name in ("pairs.tsv", "dev.tsv", "test.tsv")]
        read = [read_click_log(part).queries for part in parts if part.exists()]
        assert sum(map(len, read)) == 31
        text = "".join(part.read_text() for part in parts)
        assert text.count("\t1\n") <= 1


def test_the_catalogue_has_every_title_once_in_order(log, tmp_path):
    split_file(log, tmp_path / "out")
    ids, titles = read_texts(tmp_path / "out" / "titles.tsv")
    assert titles == read_click_log(log).titles
    assert ids == [f"t{number}" for number in range(1, len(titles) + 1)]

    given = ["log-7\tTitle 3", "b\tNew", "c\tTitle 3 "]
    (tmp_path / "catalogue.tsv").write_text("\n".join(given))
    counts = split_file(log, tmp_path / "out", catalogue=tmp_path / "catalogue.tsv", force=True)
    ids, texts = read_texts(tmp_path / "out" / "titles.tsv")
    assert list(zip(ids, texts, strict=True))[:3] == [
        ("log-7", "Title 3"), ("b", "New"), ("c", "Title 3 "),
    ]  # fmt: skip
    assert texts[3:] == [title for title in titles if title != "Title 3"]
    assert ids[3:] == [f"log--{number}" for number in range(1, len(titles))]
    assert counts.titles == len(ids) and counts.added == len(titles) - 1


def test_the_catalogue_keeps_its_fields(log, tmp_path):
    given = "id\ttitle\tprice\tbrand\nlog-7\tTitle 3\t5\t\nb\tNew\t\tAcme\n"
    (tmp_path / "catalogue.tsv").write_text(given)
    counts = split_file(log, tmp_path / "out", catalogue=tmp_path / "catalogue.tsv")
    assert (tmp_path / "out" / "titles.tsv").read_text().startswith(given)
    products = read_titles(tmp_path / "out" / "titles.tsv")
    values = products.fields.values(range(counts.titles))
    assert values[:2] == [{"price": 5, "brand": None}, {"price": None, "brand": "Acme"}]
    assert len(values) > 2 and all(field is None for field in values[-1].values())


@pytest.mark.parametrize("by", WAYS)
def test_texts_that_do_not_fit_in_memory_change_nothing(log, tmp_path, by, monkeypatch):
    expected = split_file(log, tmp_path / "a", **HALF, by=by)
    few = functools.partial(DistinctTexts, limit=40)
    monkeypatch.setattr(splitting, "DistinctTexts", few)
    assert split_file(log, tmp_path / "b", **HALF, by=by) == expected
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_distinct_texts_keep_the_order_of_first_appearance(tmp_path):
    rng = random.Random(0)
    texts = [f"text {rng.randrange(500)}\u2028\r{rng.randrange(2)}" for _ in range(3000)]
    for limit in (100, 400, 10_000):
        found = DistinctTexts(tmp_path / "some", limit)
        for text in texts:
            found.add(text)
        assert (tmp_path / "some").exists() == (limit < 1000)
        assert [*found.texts()] == [*found.texts()] == [*dict.fromkeys(texts)]
        found.close()
        assert not (tmp_path / "some").exists()


def test_standard_input_and_a_share_of_nothing(log, tmp_path, monkeypatch):
    whole = split_file(log, tmp_path / "a", by="time", dev=0, test=0.5)
    assert sorted(os.listdir(tmp_path / "a")) == [
        "files.json",
        "pairs.tsv",
        "split.json",
        "test.tsv",
        "titles.tsv",
    ]
    stdin = io.TextIOWrapper(io.BytesIO(log.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert split_file("-", tmp_path / "b", by="time", dev=0, test=0.5) == whole
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_bad_lines_stop_or_are_counted(tmp_path):
    lines = [*lines_of(300), "no tab\n", "q\tt\t0\n"]
    (tmp_path / "log.tsv").write_text("".join(lines))
    with pytest.raises(SentembError, match=r"log\.tsv:301: no tab"):
        split_file(tmp_path / "log.tsv", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(SentembError, match=r"log\.tsv:301: no tab"):
        split_log(tmp_path / "log.tsv")
    counts = split_file(tmp_path / "log.tsv", tmp_path / "out", skip_bad_lines=True)
    assert counts.bad_lines == 2 and sum(counts.lines) == 300
    assert split_log(tmp_path / "log.tsv", skip_bad_lines=True)[0].bad_lines == 2


def test_what_would_be_read_as_quoted_csv_is_a_bad_line(tmp_path):
    lines = [json.dumps({"query": f"q{n}", "clicked": [f"t{n}"]}) for n in range(300)]
    record = {"query": "q", "clicked": ["t1"], "skipped": ['"Acme 15.6"" Laptop"']}
    for bad in (record, {"query": "laptop", "clicked": ['"Acme 15.6"" Laptop"']}):
        (tmp_path / "log.jsonl").write_text("\n".join([*lines, json.dumps(bad)]))
        with pytest.raises(SentembError, match=r"log\.jsonl:301: the title .* as quoted CSV"):
            split_file(tmp_path / "log.jsonl", tmp_path / "out", force=True)
        counts = split_file(
            tmp_path / "log.jsonl", tmp_path / "out", skip_bad_lines=True, force=True
        )
        assert counts.bad_lines == 1 and sum(counts.lines) == 300
        for name in ("pairs.tsv", "dev.tsv", "test.tsv"):
            read_click_log(tmp_path / "out" / name)
    # A phrase in quotes is a pair, but as the first line of a file it looks like CSV.
    phrases = [f'"hero {n}"\t"Hero {n}"\n' for n in range(300)]
    (tmp_path / "log.tsv").write_text("".join(["a\tb\n", *phrases]))
    for by, place in (("query", r"log\.tsv:\d+: "), ("time", "")):
        with pytest.raises(SentembError, match=f"^(.*{place})the pair .* as quoted CSV"):
            split_file(tmp_path / "log.tsv", tmp_path / by, by=by)
        assert not (tmp_path / by).exists()


@pytest.mark.parametrize("by", ["query", "click", "time"])
def test_whatever_call_fails_all_or_nothing_is_written(tmp_path, by, monkeypatch):
    monkeypatch.setattr(splitting, "DistinctTexts", functools.partial(DistinctTexts, limit=20))
    log = tmp_path / "log.tsv"
    log.write_text("".join(lines_of(60)))
    split_file(log, tmp_path / "whole", **HALF, by=by)
    whole, failed = tree(tmp_path / "whole"), 0
    for count in itertools.count(1):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        with monkeypatch.context() as patch:
            error = OSError(28, "No space left on device")
            calls = failing_calls(patch, ("open", "replace", "rename", "mkdir"), count, error)
            with contextlib.suppress(SentembError):
                split_file(log, tmp_path / "out", **HALF, by=by)
        if len(calls) < count:
            break
        if (tmp_path / "out").exists():  # some errors mean nothing: that a folder is there
            assert tree(tmp_path / "out") == whole
        else:
            failed += 1
    assert failed > 3
    assert tree(tmp_path / "out") == whole


def test_what_is_there_is_not_lost(log, tmp_path):
    out = tmp_path / "out"
    split_file(log, out)
    before = tree(out)
    with pytest.raises(SentembError, match="is not empty"):
        split_file(log, out)
    (tmp_path / "log.jsonl").write_text(
        "".join(f'{{"query": "q{k}", "clicked": ["t"], "skipped": ["s"]}}\n' for k in range(99))
    )
    with pytest.raises(SentembError, match=r"holds .*pairs\.tsv, which the command reads"):
        split_file(out / "pairs.tsv", out, seed=1, force=True)
    assert tree(out) == before
    split_file(log, out, dev=0, force=True)
    assert sorted(os.listdir(out)) == [
        "files.json", "pairs.tsv", "split.json", "test.tsv", "titles.tsv",
    ]  # fmt: skip
    split_file(tmp_path / "log.jsonl", out, force=True)
    assert sorted(os.listdir(out)) == [
        "dev.tsv", "files.json", "pairs.jsonl", "split.json", "test.tsv", "titles.tsv",
    ]  # fmt: skip


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dev": 5}, "dev is 5; give a share such as 5% or 0.05"),
        ({"test": "5"}, "test is '5'; give a share"),
        ({"dev": "five"}, "dev is 'five'"),
        ({"dev": -0.1}, "dev is -0.1"),
        ({"dev": float("nan")}, "dev is nan"),
        ({"dev": 0, "test": 0}, "together are 0 of the log"),
        ({"dev": 0.5, "test": "50%"}, "together are 1 of the log"),
        ({"by": "day"}, "by is 'day'; choose query, title, click, both, time"),
        ({"seed": -1}, "seed is -1"),
        ({"by": "time", "seed": 1}, "a split by time draws nothing; leave seed out"),
        ({"dev": 1e-9}, r"no line is on the dev side; give a larger share.*use the dev\.tsv"),
    ],
)
def test_splits_that_cannot_be(log, tmp_path, settings, message):
    with pytest.raises(SentembError, match=message):
        split_log(log, **settings)
    with pytest.raises(SentembError, match=message):
        split_file(log, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_table_is_not_a_log():
    with pytest.raises(SentembError, match=r"not dict; ClickLog\.from_frame"):
        split_log({"query": ["a"]})


def test_a_folder_is_not_a_log(tmp_path):
    with pytest.raises(SentembError, match="is a folder; name a file of query<TAB>title lines"):
        read_click_log(tmp_path)
    (tmp_path / "pairs.tsv").write_text("q\tt\n")
    with pytest.raises(SentembError, match=r"is a folder; did you mean .*pairs\.tsv\?"):
        read_click_log(tmp_path)


def test_shares():
    assert [share_of("dev", text) for text in ("5%", "0.05", ".05", "5.0 %", 0.05)] == [0.05] * 5
    assert share_of("dev", 0) == 0
    assert is_share("5%") and is_share(0.05) and not is_share("dev.tsv") and not is_share(None)


# -- the command -----------------------------------------------------------------------------------


def test_the_command_says_what_it_wrote(log, tmp_path):
    out = tmp_path / "out"
    arguments = ["split", str(log), "-o", str(out), "--dev", "25%", "--test", "0.25"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    train, dev, test = split_log(log, **HALF)
    counts = [
        len((out / f"{name}.tsv").read_text().splitlines()) for name in ("pairs", "dev", "test")
    ]
    n_titles = len(read_click_log(log).titles)
    assert result.output == (
        f"{out}: {counts[0]} lines to train, {counts[1]} dev ({len(dev.queries)} queries), "
        f"{counts[2]} test ({len(test.queries)} queries); {n_titles} titles; no query is on two "
        "sides\n"
    )
    assert len(train.queries) > 50

    result = CliRunner().invoke(main, [*arguments, "--by", "title", "--dev", "0", "--force"])
    assert "titles); " in result.output and "no held-out title is clicked" in result.output


def test_the_public_name():
    assert sentemb.split_log is splitting.split_log
