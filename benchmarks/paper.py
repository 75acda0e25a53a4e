"""The paper on one page: measure every figure, table and appendix, and write docs/paper.md.

    PYTHONHASHSEED=0 python benchmarks/paper.py [--threads 1] [--again PART ...] [--text-only]

Each part's numbers are kept in docs/results/paper/ as JSON, and a part whose numbers are there is
not measured again; models are kept in build/paper/. From nothing it takes about ten minutes. The
hash seed matters to Doc2Vec alone: gensim starts its inference from the hash of a text.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import paper_parts as parts
from pages import ROOT
from paper_models import PAIRS, SETTINGS, WORK, Laboratory
from paper_parts import PICTURES, RESULTS, UNTESTED

PAGE = ROOT / "docs" / "paper.md"


@dataclass(frozen=True)
class Part:
    """A figure, table or appendix of the paper.

    Attributes
    ----------
    key : str
        Names its files.
    title : str
    claim : str
        What the paper claims with it.
    command : str
        How to make it with the package.
    measure : callable, optional
        From a `Laboratory` to a dict that JSON can hold; None if there is nothing to measure.
    """

    key: str
    title: str
    claim: str
    command: str
    measure: Callable[[Laboratory], dict] | None


_Q, _T = f'"{parts.QUERY}"', f'"{parts.TITLE}"'
_BQ, _BT = f'"{parts.BATH_QUERY}"', f'"{parts.BATH_TITLE}"'
_OWN = "--colours own"
PARTS = [
    Part(
        "figure-04",
        "Figure 4: gates, cell state and output for the first query",
        "Word by word, the cell state and the output absorb more of the content of the query.",
        f"sentemb plot-gates lstm {_Q} {_OWN}",
        parts.figure_4,
    ),
    Part(
        "figure-05",
        "Figure 5: the same for a clicked title",
        "The input gate is almost shut at words 3, 7 and 9 (*accommodation*, *discount*, "
        "*reservation*), so these words barely affect the similarity to the query.",
        f"sentemb plot-gates lstm {_Q} --title {_T} {_OWN}",
        parts.figure_5,
    ),
    Part(
        "figure-06",
        "Figure 6: the ten most active cells for the first pair",
        "The cells that are most active at the end change at the keywords.",
        f"sentemb plot-gates lstm {_Q} --title {_T} --view cells",
        parts.figure_6,
    ),
    Part(
        "figure-07",
        "Figure 7: training cost of LSTM and RNN",
        "The LSTM learns faster and reaches a lower cost.",
        "sentemb plot-loss lstm rnn",
        parts.figure_7,
    ),
    Part(
        "figure-08",
        "Figure 8: the input gate for the title alone",
        "On a scale of its own the attenuation of words 3, 7 and 9 is plain.",
        f"sentemb plot-gates lstm {_Q} --title {_T} --gates i {_OWN}",
        parts.figure_8,
    ),
    Part(
        "figure-09",
        "Figure 9: gates for the second query",
        "Another example of attenuation: the gate is lower at words that carry little meaning.",
        f"sentemb plot-gates lstm {_BQ} {_OWN}",
        parts.figure_9,
    ),
    Part(
        "figure-10",
        "Figure 10: gates for the second title",
        "The same for a title that is a bad match for the second query.",
        f"sentemb plot-gates lstm {_BQ} --title {_BT} {_OWN}",
        parts.figure_10,
    ),
    Part(
        "figure-11",
        "Figure 11: the ten most active cells for the second query",
        "They change at the keywords.",
        f"sentemb plot-gates lstm {_BQ} --view cells",
        parts.figure_11,
    ),
    Part(
        "figure-12",
        "Figure 12: the ten most active cells for the second title",
        "They change at the keywords.",
        f"sentemb plot-gates lstm {_BQ} --title {_BT} --view cells",
        parts.figure_12,
    ),
    Part(
        "figure-13",
        "Figure 13: how the model is trained",
        "A diagram, like Figures 1 to 3; it claims nothing that can be measured. "
        "[gradients.md](gradients.md) derives what it shows.",
        "",
        None,
    ),
    Part(
        "table-01",
        "Table I: keywords of the first query, bidirectional LSTM",
        "More than 40 % of the ten most active cells declare the keywords, in both directions.",
        f"sentemb keywords bilstm {_Q}",
        parts.table_1,
    ),
    Part(
        "table-02",
        "Table II: keywords of the first title, bidirectional LSTM",
        "The same for the title.",
        f"sentemb keywords bilstm {_T} --side document",
        parts.table_2,
    ),
    Part(
        "table-03",
        "Table III: which cells extract the words of 20 queries about food and health",
        "Words of one topic are extracted by the same cells.",
        "sentemb topics lstm log/test/queries.tsv --per-query",
        parts.table_3,
    ),
    Part(
        "table-04",
        "Table IV: ranking",
        "The LSTM ranks web documents better than BM25, PLSA, DSSM, CLSM, Doc2Vec, Skip-Thought "
        "and the RNN.",
        "make table4",
        parts.table_4,
    ),
    Part(
        "table-05",
        "Table V: LSTM and RNN, keywords of the first query",
        "The cells of the LSTM single out the keywords; those of the RNN do so less.",
        f"sentemb keywords lstm {_Q} --compare-with rnn",
        parts.table_5,
    ),
    Part(
        "table-06",
        "Table VI: LSTM and RNN, keywords of the first title",
        "The same for the title.",
        f"sentemb keywords lstm {_T} --side document --compare-with rnn",
        parts.table_6,
    ),
    Part(
        "table-07",
        "Table VII: LSTM and RNN, keywords of the second query",
        "The same for the second query.",
        f"sentemb keywords lstm {_BQ} --compare-with rnn",
        parts.table_7,
    ),
    Part(
        "table-08",
        "Table VIII: LSTM and RNN, keywords of the second title",
        "The same for the second title.",
        f"sentemb keywords lstm {_BT} --side document --compare-with rnn",
        parts.table_8,
    ),
    Part(
        "table-09",
        "Table IX: keywords of the second query, bidirectional LSTM",
        "As Table I.",
        f"sentemb keywords bilstm {_BQ}",
        parts.table_9,
    ),
    Part(
        "table-10",
        "Table X: keywords of the second title, bidirectional LSTM",
        "As Table II.",
        f"sentemb keywords bilstm {_BT} --side document",
        parts.table_10,
    ),
    Part(
        "appendix-c",
        "Appendix C: scores of a good and a bad pair",
        "The LSTM scores the good pair higher and the bad pair lower than the RNN does.",
        f"sentemb score lstm {_Q} {_T}",
        parts.appendix_c,
    ),
    Part(
        "appendix-f",
        "Appendix F: what Doc2Vec finds similar",
        "Doc2Vec was trained properly: its nearest texts to *pizza* and *infection* make sense. So "
        "its low NDCG is due to the method.",
        "",
        parts.appendix_f,
    ),
]


def results_of(part: Part, lab: Laboratory, again: bool) -> dict | None:
    """The numbers of a part: read if they are there, else measured and written."""
    if part.measure is None:
        return None
    path = RESULTS / f"{part.key}.json"
    if again or not path.exists():
        print(part.title, file=sys.stderr)
        RESULTS.mkdir(parents=True, exist_ok=True)
        found = part.measure(lab)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def page_of(results: dict[str, dict | None]) -> str:
    """docs/paper.md from the numbers of all parts."""
    sections = [_head(), _summary(results)]
    sections += [_section(part, results[part.key]) for part in PARTS]
    return "\n\n".join(sections) + "\n"


def _head() -> str:
    trainings = "\n".join(
        f"sentemb train log/pairs.tsv --dev log/dev --preset paper{_options(name)} -o {name}"
        for name in SETTINGS
    )
    words = textwrap.fill(
        f"In the examples, {_listed(parts.FUNCTION_WORDS)} count as function words and all others "
        f"as content words. The second title, *{parts.BATH_TITLE}*, goes as far as the paper's "
        "captions print it. A dash marks the first word that a direction reads: it has no earlier "
        "output to compare with. *Left out* is the score minus the score without the word. In the "
        "pictures cells go down and words across; where a command draws a query and a title, the "
        "picture may show the title alone. The panels are the input gate i (gate 3 in the paper), "
        "the output gate o (gate 1), the cell state c and the output y, each with its own colour "
        "scale: for a gate the palest colour is its smallest value, not zero. This LSTM has no "
        "forget gate f (gate 2).",
        100,
    )
    return f"""# The paper on one page

For every figure, table and appendix of Palangi et al. (arXiv 1502.06922, version 3) that can be
measured: what the paper claims, a command, our picture or numbers, and a verdict. The paper's log
is private. The models here are trained with the paper's settings on a simulated log of {PAIRS:,}
pairs, which covers hotels, home repair, food and health among 45 topics:

```
sentemb simulate -o log --pairs {PAIRS}
{trainings}
```

`make paper` (`benchmarks/paper.py`) writes this page. The verdicts follow from the numbers by the
rules in `benchmarks/paper_parts.py`; they are about one training of each model on these data, and
about single examples where the paper shows single examples. [analysis.md](analysis.md) measures the
same claims on 2,000 queries whose keywords and topics are known.

{words}"""


def _options(name: str) -> str:
    """The options of a training other than those of the preset."""
    options = {key.replace("_", "-"): value for key, value in SETTINGS[name].items()}
    if options["model"] == "lstm":  # as in the preset
        del options["model"]
    return "".join(f" --{key} {value}" for key, value in options.items())


def _listed(words: frozenset[str]) -> str:
    first, last = sorted(words)[:-1], sorted(words)[-1]
    return f"{', '.join(f'*{word}*' for word in first)} and *{last}*"


def _summary(results: dict[str, dict | None]) -> str:
    lines = ["| part of the paper | verdict |", "| --- | --- |"]
    for part in PARTS:
        found = results[part.key]
        verdict = "nothing to measure" if found is None else found["verdict"]
        lines.append(f"| [{part.title}](#{_anchor(part.title)}) | {verdict} |")
    return "\n".join(
        [
            *lines,
            "",
            f"The absolute figures of the paper's tables {UNTESTED}: they depend on its log and "
            "its judges.",
        ]
    )


def _anchor(title: str) -> str:
    """The name that GitHub gives to a heading."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _section(part: Part, found: dict | None) -> str:
    lines = [f"## {part.title}", f"**Claim.** {part.claim}"]
    if part.command:
        lines.append(f"```\n{part.command}\n```")
    if (PICTURES / f"{part.key}.png").exists():
        lines.append(f"![{part.title}]({PICTURES.name}/{part.key}.png)")
    if found is not None:
        lines.append(_table([found["head"], *found["rows"]]))
        lines.append(f"**Verdict: {found['verdict']}.** {found['why']}")
    return "\n\n".join(lines)


def _table(rows: list[list[str]]) -> str:
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rest])


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--again", nargs="*", default=[], metavar="PART", help="Measure these parts again, or all."
    )
    parser.add_argument("--text-only", action="store_true", help="Measure nothing.")
    options = parser.parse_args()
    unknown = set(options.again) - {"all", *(part.key for part in PARTS)}
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    lab = Laboratory(WORK, options.threads)
    results = {}
    for part in PARTS:
        path = RESULTS / f"{part.key}.json"
        if options.text_only and part.measure is not None and not path.exists():
            parser.error(f"{path} is missing; run without --text-only")
        again = not options.text_only and bool({"all", part.key} & set(options.again))
        results[part.key] = results_of(part, lab, again)
    PAGE.write_text(page_of(results), encoding="utf-8")


if __name__ == "__main__":
    main()
