"""The numbers that are printed in Palangi et al. (arXiv 1502.06922, version 3)."""

from sentemb.analysis.keywords import NOT_COMPARED as NONE

# Tables I, II, IX and X: from left to right, from right to left; V to VIII: LSTM, RNN.
_FIRST_QUERY = [NONE, 0, 7]
_FIRST_TITLE = [NONE, 4, 3, 8, 1, 8, 5, 3, 4]
_SECOND_QUERY = [NONE, 0, 4, 7, 6, 3, 5, 0]
_SECOND_TITLE = [NONE, 1, 1, 7, 0, 9, 2, 3, 8, 4]
COUNTS = {
    "table-01": [_FIRST_QUERY, [6, 0, NONE]],
    "table-02": [_FIRST_TITLE, [4, 6, 5, 4, 5, 1, 7, 5, NONE]],
    "table-05": [_FIRST_QUERY, [NONE, 2, 9]],
    "table-06": [_FIRST_TITLE, [NONE, 10, 7, 9, 6, 8, 3, 2, 6]],
    "table-07": [_SECOND_QUERY, [NONE, 1, 10, 4, 6, 2, 7, 1]],
    "table-08": [_SECOND_TITLE, [NONE, 1, 4, 4, 3, 7, 2, 5, 4, 7]],
    "table-09": [_SECOND_QUERY, [4, 1, 6, 7, 6, 7, 7, NONE]],
    "table-10": [_SECOND_TITLE, [5, 9, 5, 4, 8, 4, 5, 5, 9, NONE]],
}
# Appendix C: the good and the bad pair.
SCORES = {"RNN": (0.8165, 0.7016), "LSTM": (0.9161, 0.5944)}
# Appendix F.
SIMILAR = {
    "pizza": {
        "recipes": 0.9316, "recipe": 0.9296, "food": 0.9251, "restaurants": 0.9224, "bar": 0.9192,
        "sabayon": 0.9169, "page": 0.9161, "restaurant": 0.9112, "house": 0.9105, "the": 0.9104,
    },
    "infection": {
        "infections": 0.9699, "treatment": 0.9143, "symptoms": 0.9139, "disease": 0.9101,
        "palpitations": 0.9084, "pneumonia": 0.9073, "medical": 0.9043, "abdomen": 0.9034,
        "medlineplus": 0.9032, "gout": 0.9028,
    },
}  # fmt: skip
# Table IV: NDCG@1, @3 and @10 in percent.
NDCG = {
    "Skip-Thought": (26.9, 29.7, 36.2),
    "Doc2Vec": (29.1, 31.8, 38.4),
    "ULM": (30.4, 32.7, 38.5),
    "BM25": (30.5, 32.8, 38.8),
    "PLSA (T = 500)": (30.8, 33.7, 40.2),
    "DSSM": (31.0, 34.4, 41.7),
    "CLSM, window 1": (31.8, 35.1, 42.6),
    "CLSM, window 3": (32.1, 35.2, 42.7),
    "CLSM, window 5": (32.0, 35.2, 42.6),
    "RNN (288)": (31.7, 35.0, 42.3),
    "LSTM (32)": (31.9, 35.5, 42.7),
    "LSTM (64)": (32.9, 36.3, 43.4),
    "LSTM (96), n = 2": (32.6, 36.0, 43.4),
    "LSTM (96), n = 4": (33.1, 36.5, 43.6),
    "LSTM (96), n = 6": (33.1, 36.6, 43.6),
    "LSTM (96), n = 8": (33.1, 36.4, 43.7),
    "BiLSTM (96)": (33.2, 36.6, 43.6),
}
# The ticks of the colour bars in version 2, first to last; version 3 has no text in its pictures.
_SHARED = (-0.6, -0.4, -0.2, 0, 0.2, 0.4)
_FIGURE_9 = (-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4)
SCALES: dict[str, dict[str, tuple[float, ...]]] = {
    "figure-04": dict.fromkeys("icoy", _SHARED),
    "figure-05": dict.fromkeys("icoy", _SHARED),
    "figure-06": {"query": (0.02, 0.04, 0.06, 0.08), "title": (0.05, 0.1)},
    "figure-08": {"i": _SHARED},
    "figure-09": dict.fromkeys("icoy", _FIGURE_9),
    "figure-10": {
        "i": (0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22),
        "c": (-0.2, -0.1, 0, 0.1, 0.2, 0.3),
        "o": (0.35, 0.4, 0.45, 0.5, 0.55),
        "y": (-0.1, -0.05, 0, 0.05, 0.1),
    },
    "figure-11": {"query": (0, 0.02, 0.04, 0.06, 0.08, 0.1)},
    "figure-12": {"title": (0.02, 0.04, 0.06, 0.08, 0.1)},
}


def scales_of(figure: str) -> str:
    """The ends of the printed scales: ``i 0.1 to 0.22; c -0.2 to 0.3``, one if all are alike."""
    scales = SCALES[figure]
    ends = {
        name: f"{ticks[0]:g} to {ticks[-1]:g}".replace("-", "−") for name, ticks in scales.items()
    }
    alike = set(ends.values())
    return alike.pop() if len(alike) == 1 else "; ".join(f"{n} {end}" for n, end in ends.items())
