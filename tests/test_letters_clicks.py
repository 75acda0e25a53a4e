"""Letter n-grams with clicks: against the definition, text by text."""

import math
from collections import Counter

import numpy as np
from click.testing import CliRunner
from helpers import made_up_log
from hypothesis import given
from hypothesis import strategies as st

from sentemb import Index, train
from sentemb.cli import main
from sentemb.comparison.baselines.letters import LettersOfClicks, letter_ngrams
from sentemb.data.click_log import ClickLog, write_click_log

TEXTS = st.text("abé東 \u3000", min_size=1, max_size=8).filter(str.strip)


def naive_scores(titles, clicks, query):
    """The scores of all titles; ``clicks`` are {query: {title: clicks}}."""

    def grams(text):
        found = Counter()
        for word in text.lower().split():
            padded = f" {word} "
            for n in (2, 3, 4):
                found.update(padded[k : k + n] for k in range(len(padded) - n + 1))
        return found

    texts = [grams(text) for text in (*titles, *clicks)]
    holding = Counter(gram for text in texts for gram in text)
    idf = {gram: 1 + math.log((1 + len(texts)) / (1 + n)) for gram, n in holding.items()}

    def cosine(a, b):
        a, b = ({g: n * idf[g] for g, n in x.items() if g in idf} for x in (a, b))
        length = math.hypot(*a.values()) * math.hypot(*b.values())
        return sum(a[g] * b.get(g, 0) for g in a) / length if length else 0.0

    asked, scores = grams(query), []
    for title in titles:
        found = [cosine(asked, grams(title))]
        for text, of_titles in clicks.items():
            n = of_titles.get(title.strip(), 0)
            found.append(math.sqrt(n / sum(of_titles.values())) * cosine(asked, grams(text)))
        scores.append(max(found))
    return np.array(scores)


@given(
    st.lists(TEXTS, min_size=1, max_size=6, unique_by=str.strip),
    st.lists(st.tuples(TEXTS, TEXTS | st.integers(0, 5), st.integers(1, 9)), min_size=1),
    st.lists(TEXTS | st.just("zz"), min_size=1, max_size=70),
)
def test_scores_are_those_of_the_definition(titles, pairs, queries):
    pairs = [(q, t if isinstance(t, str) else titles[t % len(titles)], n) for q, t, n in pairs]
    log = ClickLog.from_pairs(pairs)
    clicks = {query: Counter() for query in log.queries}
    for q, t, n in zip(log.query_index, log.title_index, log.clicks, strict=True):
        clicks[log.queries[q]][log.titles[t]] += int(n)
    places, scores = LettersOfClicks(titles, log, threads=1).find(queries, 4)
    for query, row, of_row in zip(queries, places.tolist(), scores, strict=True):
        expected = naive_scores(titles, clicks, query)
        order = np.argsort(-expected.round(6), kind="stable")[:4]
        is_found = np.array(row) >= 0
        assert is_found.sum() == (expected[order] > 1e-9).sum()
        # One factor for all titles of a query.
        found = of_row[is_found]
        if found.size:
            best = np.sort(expected[order[: found.size]])[::-1]
            np.testing.assert_allclose(found / found[0], best / best[0], atol=1e-5)
            near = expected[np.array(row)[is_found]]
            np.testing.assert_allclose(near, best, atol=1e-5)


def test_pieces_stay_within_words():
    assert letter_ngrams("A bc") == [" a", "a ", " a ", " b", "bc", "c ", " bc", "bc ", " bc "]


def test_evaluate_compares_with_it(tmp_path, monkeypatch):
    name = "letters-clicks"
    monkeypatch.chdir(tmp_path)
    log = made_up_log()
    write_click_log(log, "log.tsv")
    model = train(log, epochs=1, cells=2, threads=1, output="m")
    arguments = ["evaluate", "m", "log.tsv", "--compare-with", name]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2 and f"--compare-with {name} needs --log" in refused.stderr
    found = CliRunner().invoke(main, [*arguments, "--log", "log.tsv"])
    assert found.exit_code == 0, found.output
    # Of all queries, then of those of each kind.
    line, *_ = (line for line in found.stdout.splitlines() if line.startswith(name))
    assert float(line.split()[1]) > 0.3  # the clicks themselves are in the log
    Index.build(model, log.titles).save("i")
    of_index = CliRunner().invoke(main, ["evaluate", "i", *arguments[2:], "--log", "log.tsv"])
    assert line.split() in [one.split() for one in of_index.stdout.splitlines()]
