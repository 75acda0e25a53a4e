"""Every figure, table and claim of Palangi et al. (version 3): its place, and what measures it."""

import json
from collections.abc import Callable
from functools import partial

import paper_parts as parts
import paper_ranking as ranking
import paper_training as training
from claims import NONE_PRINTED, Claim, claims_nothing, not_measured
from paper_parts import RESULTS
from paper_printed import NDCG, scales_of

from sentemb.analysis.topics import MOST_ACTIVE

# Part: a function from a `Laboratory` to a dict that JSON can hold. The part names its files and
# its section in the page.
PARTS: dict[str, Callable] = {
    "figure-04": partial(parts.richer, parts.QUERY),
    "figure-05": partial(parts.attenuated, parts.TITLE),
    "unaffected": parts.unaffected,
    "figure-06": parts.different_cells,
    "figure-07": training.figure_7,
    "figure-08": partial(parts.attenuated, parts.TITLE),
    "figure-09": partial(parts.evolving, parts.BATH_QUERY),
    "figure-10": partial(parts.attenuated, parts.BATH_TITLE),
    "figure-11": partial(parts.largest_steps, parts.BATH_QUERY, None),
    "figure-12": partial(parts.largest_steps, parts.BATH_QUERY, parts.BATH_TITLE),
    "table-01": partial(parts.bidirectional, parts.QUERY, "query", "table-01"),
    "table-02": partial(parts.bidirectional, parts.TITLE, "document", "table-02"),
    "table-03": parts.table_3,
    "table-04": ranking.table_4,
    "table-05": partial(parts.lstm_and_rnn, parts.QUERY, "query", "table-05"),
    "table-06": partial(parts.lstm_and_rnn, parts.TITLE, "document", "table-06"),
    "table-07": partial(parts.lstm_and_rnn, parts.BATH_QUERY, "query", "table-07"),
    "table-08": partial(parts.lstm_and_rnn, parts.BATH_TITLE, "document", "table-08"),
    "table-09": partial(parts.bidirectional, parts.BATH_QUERY, "query", "table-09"),
    "table-10": partial(parts.bidirectional, parts.BATH_TITLE, "document", "table-10"),
    "appendix-c": parts.appendix_c,
    "appendix-f": parts.appendix_f,
    "score-range": parts.score_range,
    "bound": training.bound,
    "nesterov": training.nesterov,
    "training-time": training.training_time,
    "noise": training.noise,
    "clsm": ranking.clsm,
    "doc2vec": ranking.doc2vec,
    "doc2vec-settings": ranking.doc2vec_settings,
    "negatives": ranking.negatives,
    "cells": ranking.cells,
    "small-lstm": ranking.small_lstm,
    "both-directions": ranking.both_directions,
    "gates": ranking.gates,
    "plsa-topics": ranking.plsa_topics,
}
# Parts about examples that one training of small models decides: their verdicts by other seeds too.
EXAMPLES = frozenset(part for part in PARTS if part.startswith(("figure", "table"))) - {
    "figure-07",
    "figure-11",
    "figure-12",
    "table-04",
} | {"unaffected", "appendix-c", "noise"}
SEEDS = (1, 2)
_GATES = 'sentemb plot-gates lstm "${}" {}--colours own'


def _picture(figure: str) -> str:
    return f"a picture; scale in version 2: {scales_of(figure)}"


def of_part(name: str, note: str = "") -> Callable:
    """The judge of a claim that one part measures; ``note`` follows its numbers."""

    def judge(results):
        found = results[name]
        seeds = f"With two other seeds: {'; '.join(found['seeds'])}." if "seeds" in found else ""
        return found["verdict"], " ".join(filter(None, [found["why"], seeds, note]))

    return judge


def _claim(key, part, place, text, printed=NONE_PRINTED, command=None, note=""):
    """A claim that a part measures; its own printed verdict, if it has one, is in the results."""
    again = command or f"python benchmarks/paper.py --again {part}"
    path = RESULTS / f"{part}.json"
    if path.exists():
        printed = json.loads(path.read_text(encoding="utf-8")).get("printed", printed)
    return Claim(
        key, text, (part,), of_part(part, note), place, printed, again, PARTS[part],
        lambda results: results[part]["sweep"],
    )  # fmt: skip


def _ndcg(*rows: str) -> str:
    return "NDCG@1 in %: " + ", ".join(f"{row} {NDCG[row][0]}" for row in rows)


_KEYWORDS = "Keywords activate more cells than unimportant words."
_UNIMPORTANT = "The RNN sometimes gives neurons to unimportant words"
_IN_CONTRAST = "; the LSTM fewer cells (its counts, not a sentence)."


def claims() -> list[Claim]:
    """The rows of the page, in the order of the paper."""
    return [
        Claim("Figures 1 to 3, 13", "Diagrams of the RNN, of the LSTM and of the training.", (),
              claims_nothing("[gradients.md](gradients.md) derives what they show."),
              "III-A, III-B, IV; G"),
        _claim("Bound of the loss", "bound", "IV", "The loss is an upper bound of the pairwise "
               "0–1 loss."),
        _claim("Nesterov", "nesterov", "IV", "Nesterov's method makes training of both models "
               "converge faster."),
        _claim("Forget gate, peepholes", "gates", "V", "A forget gate is of little help, because a "
               "text's length is known and the state is zero at its beginning; peepholes are not "
               "important, because precise timing is not of great concern."),
        _claim("Training time", "training-time", "V", "Without peepholes and forget gate training "
               "takes less time, because there are fewer parameters."),
        _claim("Figure 4", "figure-04", "V-A.1, Figure 4", "Cell state and output grow richer with "
               "the words of the query.", _picture("figure-04"), _GATES.format("QUERY", "")),
        _claim("Figure 5", "figure-05", "V-A.1, Figure 5", "Most values of the input gate are very "
               "small at words 3, 7 and 9 (*accommodation*, *discount*, *reservation*).",
               _picture("figure-05"), _GATES.format("QUERY", '--title "$TITLE" ')),
        _claim("Attenuated words", "unaffected", "V-A.1", "So these three words do not affect the "
               "similarity of query and title."),
        _claim("Figure 6", "figure-06", "V-A.2, Figure 6", "Different words activate different "
               "cells.", _picture("figure-06"),
               'sentemb plot-gates lstm "$QUERY" --title "$TITLE" --view cells'),
        _claim("Table I", "table-01", "V-A.2, Table I", _KEYWORDS),
        _claim("Table II", "table-02", "V-A.2, Table II", _KEYWORDS, note="The paper's only "
               "keyword, *discount*, is one of the words that its Figure 5 calls attenuated."),
        _claim("Table III", "table-03", "V-A.3, Table III",
               "A cell collects keywords of one topic.",
               "cell 26 *food*, cells 2 and 6 *health*",
               "sentemb topics lstm log/test/queries.tsv --per-query"),
        Claim("Cells of Table III", "For each query, Table III lists the keywords that its most "
              "active cells extract.", (),
              claims_nothing(f"A setting: the {MOST_ACTIVE} most active cells here too."), "V-A.3",
              "5 cells", "sentemb topics lstm log/test/queries.tsv --per-query"),
        _claim("Table IV", "table-04", "V-B.1, Table IV", "The LSTM ranks significantly better "
               "than all other kinds of model.",
               _ndcg("LSTM (96), n = 4", "CLSM, window 3", "RNN (288)", "DSSM", "PLSA (T = 500)",
                     "BM25", "ULM", "Doc2Vec", "Skip-Thought"),
               note="Without Skip-Thought, which is not measured."),
        _claim("Lead over CLSM", "clsm", "V-B.1, Table IV", "The LSTM is 1.3 % above the best "
               "baseline, CLSM.", "1.3 in the text; the table gives 33.1 − 32.1 = 1.0 (1.3 to "
               "window 1)"),
        _claim("Doc2Vec", "doc2vec", "V-B.1, Table IV", "A task-specific model is significantly "
               "better than Doc2Vec, a general one.", _ndcg("LSTM (96), n = 4", "Doc2Vec")),
        _claim("Doc2Vec's settings", "doc2vec-settings", "V-B.1", "Other windows, 400 dimensions "
               "or 100 epochs of Doc2Vec hardly change NDCG.", "windows: 0.4 %"),
        Claim("Skip-Thought", "It is significantly better than Skip-Thought off the shelf.", (),
              not_measured("Its published weights are not available here; the paper has them from "
                           "https://github.com/ryankiros/skip-thoughts."), "V-B.1, Table IV",
              _ndcg("LSTM (96), n = 4", "Skip-Thought")),
        _claim("PLSA's topics", "plsa-topics", "V-B.1", "100 to 500 topics of PLSA, estimated on "
               "the documents' side, rank about equally.",
               _ndcg("PLSA (T = 500)")),
        _claim("Negatives", "negatives", "V-B.1, Table IV", "More unclicked titles n are "
               "expected to rank better in general.",
               _ndcg(*(f"LSTM (96), n = {n}" for n in (2, 4, 6, 8)))),
        _claim("Cells", "cells", "Table IV",
               "NDCG@1 rises from 32 to 64 and 96 cells (rows, not a sentence).",
               _ndcg("LSTM (32)", "LSTM (64)", "LSTM (96), n = 4")),
        _claim("Small LSTM", "small-lstm", "Table IV", "An LSTM with 32 cells (4.8 M parameters) "
               "is above DSSM (14.4 M): rows, not a sentence.", _ndcg("LSTM (32)", "DSSM")),
        _claim("Both directions", "both-directions", "Table IV", "Two LSTMs that read in opposite "
               "directions, their outputs joined (V-B.1), are above one: rows, not a sentence.",
               _ndcg("BiLSTM (96)", "LSTM (96), n = 4")),
        _claim("Figure 7", "figure-07", "V-B.1, Figure 7", "The LSTM lowers the training cost more "
               "effectively than the RNN.", "two curves, no numbers"),
        _claim("Noise", "noise", "II; VI", "The model is robust to noise: the vector of a text "
               "holds mainly its keywords."),
        _claim("Figure 8", "figure-08", "B, Figure 8", "The gate of Figure 5 drawn more clearly: "
               "at words 3, 7 and 9 its values are very small for most cells.",
               _picture("figure-08"),
               _GATES.format("QUERY", '--title "$TITLE" --gates i ')),
        _claim("Appendix C", "appendix-c", "C", "The scores of the LSTM are nearer to people's "
               "judgements: higher for the good pair, lower for the bad one.",
               "LSTM 0.9161 and 0.5944, RNN 0.8165 and 0.7016: gaps of +0.322 and +0.115"),
        _claim("Range of scores", "score-range", "C", "A score is between 0 and 1."),
        _claim("Table V", "table-05", "C, Table V", _UNIMPORTANT + _IN_CONTRAST,
               command='sentemb keywords lstm "$QUERY" --compare-with rnn'),
        _claim("Table VI", "table-06", "C, Table VI",
               f"{_UNIMPORTANT}, 6 of them to *in*{_IN_CONTRAST}",
               command='sentemb keywords lstm "$TITLE" --side document --compare-with rnn'),
        _claim("Table VII", "table-07", "C, Table VII", _UNIMPORTANT + _IN_CONTRAST,
               command='sentemb keywords lstm "$BATH" --compare-with rnn'),
        _claim("Table VIII", "table-08", "C, Table VIII",
               f"{_UNIMPORTANT}, 3 of them to *a* and 4 to *you*{_IN_CONTRAST}",
               command='sentemb keywords lstm "$PAINT" --side document --compare-with rnn'),
        _claim("Figure 9", "figure-09", "E-A, Figure 9", "Cell state and output evolve over the "
               "words.", _picture("figure-09"), _GATES.format("BATH", "")),
        _claim("Figure 10", "figure-10", "E-A, Figure 10; C", "The input gate is very small for "
               "most cells at words 3, 4, 7 and 9 of a title (*you*, *paint*, *and*, *paint*) that "
               "people rate a bad match.",
               _picture("figure-10"), _GATES.format("BATH", '--title "$PAINT" ')),
        _claim("Figure 11", "figure-11", "E-B, Figure 11", "The ten most active cells for the "
               "second query are drawn.", _picture("figure-11"),
               'sentemb plot-gates lstm "$BATH" --view cells'),
        _claim("Figure 12", "figure-12", "E-B, Figure 12", "The ten most active cells for the "
               "second title are drawn.", _picture("figure-12"),
               'sentemb plot-gates lstm "$BATH" --title "$PAINT" --view cells'),
        _claim("Table IX", "table-09", "E-B, Table IX", _KEYWORDS),
        _claim("Table X", "table-10", "E-B, Table X", _KEYWORDS),
        _claim("Appendix F", "appendix-f", "F", "The words that Doc2Vec finds most similar to "
               "*pizza* and *infection* make sense, so it was trained properly.",
               "pizza: recipes .93, recipe .93, food .93; infection: infections .97, treatment "
               ".91, symptoms .91"),
    ]  # fmt: skip
