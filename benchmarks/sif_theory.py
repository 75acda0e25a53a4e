"""The mathematics of the SIF paper, measured: on simulated data and on word vectors.

    python benchmarks/sif_theory.py [VECTORS]

prints every table in Markdown, writes them as CSV into docs/results/sif, and draws the paper's
Figure 1 into docs/figures. VECTORS is anything that `sentemb vectors` reads, most frequent word
first; the published numbers are those of GloVe 6B with 100 dimensions. Without it, or without the
sentences of STS-B, the tables that need them are skipped with a message. Three minutes.
"""

import argparse
from dataclasses import dataclass
from functools import cache

import numpy as np
from charts import DPI, FIGURES
from lab.likelihood.generative import concentration, likeliest, on_sphere
from lab.likelihood.likelihood import Likelihood, Sentences
from pages import DATA, RESULTS, csv_of
from sif_misprints import loose_steps, misprints
from sif_simulation import Settings, cosines, first_component, removed, simulate, sums

from sentemb.analysis.figures.palette import BLUE, ORANGE
from sentemb.models.vectors.probabilities import zipf
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.system.tables import markdown_table
from sentemb.text.words import plain_words

FOLDER = RESULTS / "sif"
SEEDS = range(10)
SENTENCES = DATA / "sts" / "stsb" / "dev.tsv"
# Of GloVe: the most frequent words, and those of the exact maximum, which needs Z often.
WORDS, WORDS_OF_MAXIMUM, SENTENCES_OF_MAXIMUM = 100_000, 8_000, 40


@dataclass(frozen=True)
class Table:
    """One table: the name of its CSV file, a heading, remarks, and rows with the head first."""

    name: str
    title: str
    rows: list
    remarks: tuple = ()
    left: int = 1  # columns flush left

    def lines(self):
        """Markdown."""
        lines = [f"### {self.title}", "", *markdown_table(self.rows, self.left), ""]
        return [*lines, *(line for remark in self.remarks for line in (remark, ""))]


def _mean_sd(values, digits=3):
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


# -- the simulated model --------------------------------------------------------------------------

SIMULATED = {
    "all of length 1": Settings(norm=1.0),
    "all of length 3": Settings(),
    "all of length 6": Settings(norm=6.0),
    "length 3, α = .03": Settings(alpha=0.03),
    "length 3, α = .7": Settings(alpha=0.7),
    "length 3, 40 words": Settings(length=40),
    "length 3, V = 5000, d = 50": Settings(n_words=5000, dim=50),
    "length² = 4 + .3·2d log(p/p_min)": Settings(law=(4.0, 0.3)),
    "length² = 1 + 2d log(p/p_min)": Settings(law=(1.0, 1.0)),
}


def simulated_row(settings, seeds=SEEDS):
    """The columns of `simulated`: name -> one value per seed."""
    found = {}
    for seed in seeds:
        simulation = simulate(settings, seed)
        model, sentences = simulation.model, simulation.sentences
        Z = concentration(model, simulation.directions)
        best = likeliest(model, sentences)
        rows, weights = model.vectors[sentences.words], simulation.weights(simulation.a())
        W, plain = sums(weights * rows, sentences), sums(rows, sentences)
        at_zero = model.values(np.zeros_like(W), sentences).mean()

        def gain(X, model=model, sentences=sentences, at_zero=at_zero, best=best):
            reached = model.values(on_sphere(X), sentences).mean() - at_zero
            return reached / (best.values.mean() - at_zero)

        mean = model.vectors.mean(axis=0)
        columns = {
            "Z/V": Z.mean,
            "cv of Z": Z.variation,
            "W": cosines(W, best.C).mean(),
            "plain": cosines(plain, best.C).mean(),
            "centred W": cosines(sums(weights * (rows - mean), sentences), best.C).mean(),
            "centred plain": cosines(sums(rows - mean, sentences), best.C).mean(),
            "true c": cosines(simulation.own, best.C).mean(),
            "gain W": gain(W),
            "gain plain": gain(plain),
        }
        for name, value in columns.items():
            found.setdefault(name, []).append(value)
    return found


def simulated():
    """Averages against the exact maximum of the likelihood, on data simulated by model (2)."""
    rows = []
    for name, settings in SIMULATED.items():
        found = simulated_row(settings)
        if not rows:
            rows.append(["word vectors", *found])
        digits = {"Z/V": 2, "true c": 2}
        cells = [_mean_sd(values, digits.get(key, 3)) for key, values in found.items()]
        rows.append([name, *cells])
    return Table(
        "simulated",
        "Simulated model (2): averages against the exact maximum",
        rows,
        (
            f"Mean ± standard deviation over {len(SEEDS)} seeds. V = 1000 words in d = 20 "
            "dimensions with p ~ 1/(rank + 1), α = .3, 40 sentences of 12 words unless the row "
            "says otherwise; vectors have random directions. Z over 200 random c of length 1. "
            "Columns W to centred plain: the mean cosine of the average with the c of length 1 "
            "that maximises the exact likelihood; a = (1 − α)/(αZ). True c: the cosine of the "
            "maximum with the c that the sentence was drawn from. Gain: the share of the "
            "likelihood gained from c = 0 to the maximum that the average, scaled to length 1, "
            "keeps.",
        ),
    )


# -- sentences with c0 ----------------------------------------------------------------------------

_LARGE = Settings(norm=5.0, n_words=2000, dim=30, n_sentences=400, discourse=3.0, beta=0.5)
WITH_C0 = {
    "β = 0, no c0": {"beta": 0.0},
    "c0, words in all directions": {},
    "c0, all word vectors have a component along it": {"lean": 1.5},
    "c0, vectors of frequent words have a component along it": {"lean_frequent": 0.75},
}


def with_c0_row(changes, seeds=SEEDS):
    """The columns of `with_c0`: name -> one value per seed."""
    settings = Settings(**{**_LARGE.__dict__, **changes})
    found = {}
    for seed in seeds:
        simulation = simulate(settings, seed)
        rows = simulation.model.vectors[simulation.sentences.words]
        # One constant for all rows: Z where |c| is that of c0 and c_s mixed half and half.
        weights = simulation.weights(simulation.a(settings.discourse / np.sqrt(2)))
        plain, W = sums(rows, simulation.sentences), sums(weights * rows, simulation.sentences)
        u, u_of_W = first_component(plain), first_component(W)
        pairs = np.triu_indices(settings.n_sentences, 1)
        true = (on_sphere(simulation.own) @ on_sphere(simulation.own).T)[pairs]

        def correlation(X, pairs=pairs, true=true):
            return np.corrcoef((on_sphere(X) @ on_sphere(X).T)[pairs], true)[0, 1]

        columns = {
            "avg": correlation(plain),
            "W": correlation(W),
            "R": correlation(removed(plain, u)),
            "WR": correlation(removed(W, u_of_W)),
            "W, true c0 removed": correlation(removed(W, simulation.common)),
            "cos(u, c0), R": abs(u @ simulation.common),
            "cos(u, c0), WR": abs(u_of_W @ simulation.common),
            "cv of Z": concentration(simulation.model, simulation.mixed).variation,
        }
        for name, value in columns.items():
            found.setdefault(name, []).append(value)
    return found


def with_c0():
    """What removing a component recovers where there is a c0, and where there is none."""
    rows = []
    for name, changes in WITH_C0.items():
        found = with_c0_row(changes)
        if not rows:
            rows.append(["simulation", *found])
        rows.append([name, *map(_mean_sd, found.values())])
    return Table(
        "with-c0",
        "Sentences with c0",
        rows,
        (
            f"Mean ± standard deviation over {len(SEEDS)} seeds; V = 2000, d = 30, |v| = 5 before "
            "leaning, |c0| = |c_s| = 3, c = βc0 + (1 − β)c_s, α = .3, β = .5, 400 sentences of 12 "
            "words. Columns avg to W, true c0 removed: the correlation over all pairs of sentences "
            "of the estimated cosine with that of the true c_s. u is the first singular vector. "
            "a = (1 − α)/(αZ), Z over random c of length 3/√2. Cv of Z over the c of the "
            "sentences.",
        ),
    )


# -- word vectors ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Real:
    """Word vectors in float64 with Zipf's p, and sentences as rows of them."""

    words: list
    model: Likelihood
    texts: list

    def sentences(self, first=None):
        """Sentences with at least one of the ``first`` words; other words are left out."""
        place = {word: row for row, word in enumerate(self.words[:first])}
        rows = ([place[w] for w in plain_words(text) if w in place] for text in self.texts)
        return [one for one in rows if one]


@cache
def real(path):
    """The most frequent of the vectors at ``path`` with the sentences, None if one is not there."""
    if path is None or not SENTENCES.exists():
        what = "no VECTORS were given" if path is None else f"{SENTENCES.name} of STS-B is not here"
        print(f"{what}: the tables of word vectors are skipped")
        return None
    vectors = read_word_vectors(path, limit=WORDS)
    pairs = (line.rstrip("\n").split("\t")[1:3] for line in SENTENCES.open(encoding="utf-8"))
    model = Likelihood(vectors.vectors, zipf(len(vectors)), 0.1)
    return Real(vectors.words, model, [text for pair in pairs for text in pair])


def centred(model):
    """The model with the mean of all vectors subtracted."""
    vectors = model.vectors - model.vectors.mean(axis=0)
    return Likelihood(vectors, model.probabilities, model.alpha)


def sif_averages(found, a=1e-3, sentences=400):
    """Averages of the first sentences with SIF's weights, as Algorithm 1 has them."""
    chosen = found.sentences()[:sentences]
    sentences = Sentences.of(chosen)
    p = found.model.probabilities[sentences.words]
    rows = (a / (a + p))[:, None] * found.model.vectors[sentences.words]
    return sums(rows, sentences) / np.array([len(one) for one in chosen])[:, None]


def partition_function(path):
    """Z over directions, with the given vectors."""
    found = real(path)
    if found is None:
        return None
    whole, without_mean = found.model, centred(found.model)
    directions = on_sphere(np.random.default_rng(0).standard_normal((200, whole.vectors.shape[1])))
    X = sif_averages(found)
    u = first_component(X)
    places = {
        "200 random c, ‖c‖ = 1": directions,
        "200 random c, ‖c‖ = 4": 4 * directions,
        "averages of SIF, scaled to ‖c‖ = 1": on_sphere(X),
        "+c0": u[None],
        "−c0": -u[None],
    }
    rows = [["c", "Z/V", "cv of Z", "least", "greatest", "Z/V, centred", "cv, centred"]]
    for name, C in places.items():
        Z, Z_centred = concentration(whole, C), concentration(without_mean, C)
        one = len(C) == 1
        rows.append([
            name,
            f"{Z.mean:.2f}",
            "-" if one else f"{Z.variation:.3f}",
            "-" if one else f"{Z.least:.2f}",
            "-" if one else f"{Z.greatest:.2f}",
            f"{Z_centred.mean:.2f}",
            "-" if one else f"{Z_centred.variation:.3f}",
        ])  # fmt: skip
    lengths = np.linalg.norm(whole.vectors, axis=1)
    correlation = np.corrcoef(np.log(whole.probabilities), lengths**2)[0, 1]
    remark = (
        f"{len(found.words):,} most frequent words. Least and greatest relative to the mean. c0 is "
        f"the first singular vector of the SIF averages (a = 1e-3) of 400 sentences of STS-B dev; "
        f"their mean cosine with it is {(on_sphere(X) @ u).mean():.2f}. Lengths of the vectors: "
        f"mean {lengths.mean():.1f}, first hundred words {lengths[:100].mean():.1f}, last ten "
        f"thousand {lengths[-10_000:].mean():.1f}; correlation of length² with log p "
        f"{correlation:.2f}, p by Zipf's rank."
    )
    return Table("partition-function", "The partition function of word vectors", rows, (remark,))


def averages_against_maximum(path):
    """Averages against the exact maximum, with the given vectors."""
    found = real(path)
    if found is None:
        return None
    vectors = np.array(found.model.vectors[:WORDS_OF_MAXIMUM])
    p = zipf(len(vectors))
    long_ones = [one for one in found.sentences(WORDS_OF_MAXIMUM) if len(one) >= 8]
    sentences = Sentences.of(long_ones[:SENTENCES_OF_MAXIMUM])
    directions = on_sphere(np.random.default_rng(0).standard_normal((100, vectors.shape[1])))
    Z = concentration(Likelihood(vectors, p, 0.1), directions).mean
    rows, mean = vectors[sentences.words], vectors.mean(axis=0)
    table = [["a", "‖c‖", "α", "W", "plain", "centred W", "centred plain", "same from all starts"]]
    for a in (1e-3, 1e-4):
        model = Likelihood(vectors, p, 1 / (1 + a * len(vectors) * Z))
        weights = (a / (a + p))[sentences.words, None]
        for norm in (1.0, 3.0):
            best = likeliest(model, sentences, norm)
            kinds = weights * rows, rows, weights * (rows - mean), rows - mean
            cells = (f"{cosines(sums(X, sentences), best.C).mean():.3f}" for X in kinds)
            agreeing = f"{(best.agreeing == 3).mean():.0%}".replace("%", " %")
            table.append([f"{a:g}", f"{norm:g}", f"{model.alpha:.3f}", *cells, agreeing])
    remark = (
        f"{len(vectors):,} most frequent words, the first {len(sentences)} sentences of STS-B dev "
        "with 8 of them or more. Mean cosine of the average with the exact maximum over all c of "
        "length |c|; α = 1/(1 + aZ). The last column: the sentences for which all three starts "
        "reach the same maximum."
    )
    return Table("maximum", "Averages against the exact maximum on word vectors", table, (remark,))


def nearest_to_c0(path, n=14):
    """The words whose vectors are nearest to c0."""
    found = real(path)
    if found is None:
        return None
    rows = [["a", f"the {n} nearest words to c0"]]
    units = on_sphere(found.model.vectors)
    for a in (1e-3, 1e-4):
        scores = units @ first_component(sif_averages(found, a))
        nearest = np.argsort(-scores, kind="stable")[:n]
        rows.append([f"{a:g}", ", ".join(found.words[row] for row in nearest)])
    remark = (
        "From 400 sentences of STS-B dev. The paper names, for SICK: just, when, even, one, up, "
        "little, way, there, while, but."
    )
    return Table("nearest-to-c0", "Words nearest to c0", rows, (remark,), left=2)


# -- word2vec's weights ---------------------------------------------------------------------------


def subsampling(p, t=1e-5):
    """The share of occurrences that sub-sampling keeps, as the paper has it: min(1, √(t/p))."""
    return np.minimum(1, np.sqrt(t / p))


def subsampling_code(p, t=1e-3):
    """As word2vec.c has it: min(1, (√(p/t) + 1) t/p), with its default t."""
    return np.minimum(1, (np.sqrt(p / t) + 1) * t / p)


def _sif(p, a=1e-4):
    return a / (a + p)


P = np.geomspace(1e-10, 1, 20_001)


def nearest_a():
    """The a whose weights are nearest to sub-sampling in the maximum norm, and that distance."""
    candidates = np.geomspace(1e-5, 1e-3, 2001)
    distances = [np.abs(subsampling(P) - _sif(P, a)).max() for a in candidates]
    return candidates[np.argmin(distances)], min(distances)


def word2vec_weights():
    """Sub-sampling's weights next to SIF's."""
    rows = [["p(w)", "min(1, √(1e-5/p))", "1e-4/(1e-4 + p)", "word2vec.c, t = 1e-3"]]
    for p in (1e-7, 1e-6, 1e-5, 5e-5, 1e-4, 1e-3, 1e-2, 5e-2):
        values = (kind(p) for kind in (subsampling, _sif, subsampling_code))
        rows.append([f"{p:g}", *(f"{value:.4f}" for value in values)])
    difference = np.abs(subsampling(P) - _sif(P))
    far = np.abs(subsampling_code(P) - _sif(P)).max()
    a, distance = nearest_a()
    remark = (
        f"Largest difference of the first two {difference.max():.3f}, at p = "
        f"{P[difference.argmax()]:.1e}. The a nearest to sub-sampling in the maximum norm is "
        f"{a:.1e}, at a distance of {distance:.3f}. With the default of word2vec.c the largest "
        f"difference is {far:.2f}."
    )
    return Table("word2vec-weights", "Sub-sampling of word2vec next to SIF", rows, (remark,))


def draw_weights(pyplot):
    """The paper's Figure 1: weight against frequency."""
    figure, axis = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
    axis.semilogx(P, _sif(P), color=BLUE, label="SIF: a/(a + p), a = 1e-4")
    label = "word2vec sub-sampling: min(1, √(1e-5/p))"
    axis.semilogx(P, subsampling(P), color=ORANGE, linestyle="--", label=label)
    axis.set_xlim(1e-10, 1)
    axis.set_xlabel("p(w)")
    axis.set_ylabel("weight")
    axis.legend(frameon=False, loc="lower left")
    return figure


def write_figure():
    """Write docs/figures/sif-weights.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                        "grid.alpha": 0.25, "axes.axisbelow": True}  # fmt: skip
    FIGURES.mkdir(exist_ok=True)
    figure = draw_weights(pyplot)
    figure.savefig(FIGURES / "sif-weights.png", dpi=DPI, metadata={"Software": None})
    pyplot.close(figure)


# -- all of it ------------------------------------------------------------------------------------


def tables(path=None):
    """Yield all tables that can be made: those of word vectors need ``path``."""
    yield simulated()
    yield with_c0()
    yield word2vec_weights()
    yield Table("misprints", "Misprints", misprints(), left=4)
    yield Table("loose-steps", "Loose steps", loose_steps(), left=4)
    for make in (partition_function, averages_against_maximum, nearest_to_c0):
        table = make(path)
        if table is not None:
            yield table


def write_csv(table):
    """Write a table into docs/results/sif."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"theory-{table.name}.csv").write_text(csv_of(table.rows), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", nargs="?", metavar="VECTORS")
    given = parser.parse_args()
    write_figure()
    for table in tables(given.vectors):
        write_csv(table)
        print("\n".join(table.lines()), flush=True)


if __name__ == "__main__":
    main()
