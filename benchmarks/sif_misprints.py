"""Misprints and loose steps of the SIF paper, each with its measured effect.

Used by sif_theory.py. What is measured on simulated data uses seed 0.
"""

from dataclasses import replace

import numpy as np
from lab.likelihood.generative import concentration, discourse_vectors, likeliest, on_sphere
from pages import DATA
from sif_printed import printed, wrong_means
from sif_simulation import Settings, cosines, first_component, simulate, sums

from sentemb.models.vectors.probabilities import zipf

COUNTS = DATA / "sts" / "enwiki_vocab_min200.txt"
HEAD = ["", "the paper", "what is right", "measured effect"]
# The law of TACL 2016 that the paper uses for a constant Z: log p = |v|² / 2d - log Z.
DEMANDED = Settings(law=(1.0, 1.0))


def _million_tokens():
    """Words in 10^8 characters of English, by the lengths of the words in the counts."""
    if not COUNTS.exists():
        return "not measured: the word counts of Wikipedia are not here"
    characters = words = 0
    for line in COUNTS.open(encoding="utf-8"):
        word, count = line.split()
        characters += (len(word) + 1) * int(count)
        words += int(count)
    length = characters / words
    return (
        f"a word and its space are {length:.2f} characters in the shipped counts of Wikipedia, so "
        f"10⁸ characters hold {1e8 / length / 1e6:.1f} million words"
    )


def misprints():
    """M1 to M9 as rows of a table."""
    simulation = simulate(Settings(), 0)
    model, sentences = simulation.model, simulation.sentences
    zero = np.zeros_like(simulation.own)
    values, gradient = model.values_and_gradient(zero, sentences)
    length = np.linalg.norm(gradient, axis=1)
    X = sums(simulation.weights(simulation.a()) * model.vectors[sentences.words], sentences)
    norms = np.linalg.norm(X, axis=1)
    u, u_of_units = first_component(X), first_component(on_sphere(X))
    V = 100_000
    rare = (zipf(V) < 1e-5).mean()
    wrong = "; ".join(
        f"{name}: the rows give {mean:.1f}, printed {told:.1f}"
        for _, name, told, mean in sorted(wrong_means(printed(5, 6)))
    )
    return [
        HEAD,
        ["M1", "f_w(c) denotes the log-likelihood of sentence s", "f_w(c) is the "
         "log-likelihood of the word w; that of the sentence is the sum over its words",
         f"sentences of 12 words at c = 0: {values.mean():.1f}, one word {values.mean() / 12:.2f}"],
        ["M2", "footnote 2: the maximum over ‖c‖ = 1 of C + ⟨c, g⟩ is g/‖g‖", "g/‖g‖ is where the "
         "maximum is; the maximum is C + ‖g‖",
         f"for one sentence: C = {values[0]:.2f}, ‖g‖ = {length[0]:.2f}, maximum of the linear "
         f"form {values[0] + length[0]:.2f}"],
        ["M3", "(3): the arg max is proportional to the weighted sum", "the arg max is that sum "
         "scaled to length 1; Algorithm 1 keeps its length, which decides how much a sentence "
         "counts in the singular vector",
         f"lengths of the averages differ by a factor of {norms.max() / norms.min():.1f}; the "
         f"singular vectors with and without scaling have the cosine {abs(u @ u_of_units):.3f}"],
        ["M4", "A.2: W_p is 300 × d_p; A.3 maps to 300 dimensions and classifies 100", "h = W_p v "
         "needs d_p × 300; Table 7 says 100", "none: dimensions only"],
        ["M5", "text8 has 1 million tokens", "it is 10⁸ characters", _million_tokens()],
        ["M6", "γ(x) = log 1/(1 + e⁻ˣ) is the logistic function", "γ is the logarithm of the "
         "logistic function", f"γ(0) = {-np.log(2):.3f}, the logistic function has 0.5"],
        ["M7", "means of STS'13 in Tables 1, 5 and 6", "the means of the printed rows", wrong],
        ["M8", "IMDB: 50k labelled", "25k labelled reviews for training", "none: not used here"],
        ["M9", "the weight of word2vec is proportional to 1/√p(w)", "only for p > 1e-5; below "
         "that the weight is 1",
         f"at p = 1e-7 the law gives {np.sqrt(1e-5 / 1e-7):.0f}, the weight is 1; by Zipf's rank "
         f"{rare:.0%} of {V:,} words have p < 1e-5".replace("% of", " % of")],
    ]  # fmt: skip


def _centring():
    """L1: what is lost with the slope of log Z, and what the probabilities at 0 sum to."""
    parts = []
    for name, settings in (
        ("without a common mean", Settings()),
        ("with a mean of length 1.5", Settings(lean=1.5)),
    ):
        simulation = simulate(settings, 0)
        zero = np.zeros_like(simulation.own)
        exact = simulation.model.values_and_gradient(zero, simulation.sentences)[1]
        closed = simulation.model.gradient_at_zero(simulation.sentences)
        dropped = simulation.model.values_and_gradient(zero, simulation.sentences, False)[1]
        off = np.abs(exact - closed).max() / np.abs(closed).max()
        agrees = "to below 1e-14" if off < 1e-14 else f"only to {off:.0e}"
        parts.append(f"{name} {cosines(exact, dropped).mean():.3f}")
    Z = concentration(simulation.model, simulation.directions).mean
    total = simulation.model.alpha + (1 - simulation.model.alpha) / Z
    return (
        f"cosine of the gradient at 0 with and without the slope: {', '.join(parts)}; the exact "
        f"gradient equals its closed form {agrees}; if Z is replaced by its mean over directions, "
        f"the word probabilities at c = 0 sum to {total:.3f} instead of 1"
    )


def _expansion():
    """L2: how large <v, c> is, and the gain that the first-order step promises."""
    parts = []
    for norm in (1.0, 3.0, 6.0):
        simulation = simulate(Settings(norm=norm), 0)
        model, sentences = simulation.model, simulation.sentences
        best = likeliest(model, sentences)
        products = (model.vectors[sentences.words] * best.C[sentences.sentence_of]).sum(axis=1)
        at_zero, gradient = model.values_and_gradient(np.zeros_like(best.C), sentences)
        promised = (gradient * best.C).sum(axis=1).mean()
        gained = (best.values - at_zero).mean()
        parts.append(
            f"‖v‖ = {norm:g}: mean size of ⟨v, c⟩ {np.abs(products).mean():.2f}, first order "
            f"promises {promised:.2f}, gained {gained:.2f}"
        )
    return "at the maximum, " + "; ".join(parts)


def _posteriors():
    """L3: r_w of frequent words where they were drawn, at c = 0 and at the true c."""
    parts = []
    for name, settings in (
        ("vectors of length 3", Settings(n_sentences=1000)),
        ("length² = 1 + 2d log(p/p_min)", replace(DEMANDED, n_sentences=1000)),
    ):
        simulation = simulate(settings, 0)
        model, sentences = simulation.model, simulation.sentences
        frequent = np.flatnonzero(sentences.words < 10)
        words, owners = sentences.words[frequent], sentences.sentence_of[frequent]
        share = model.alpha * model.probabilities[words]
        at_zero = 1 - share / model.word_probabilities(np.zeros((1, settings.dim)))[0, words]
        at_c = 1 - share / model.word_probabilities(simulation.own)[owners, words]
        parts.append(f"{name}: {at_zero.mean():.2f} at 0, {at_c.mean():.2f} at the true c")
    return (
        "mean r over all occurrences of the ten most frequent words (1 − α = .7), "
        f"{'; '.join(parts)}"
    )


def _twice_the_sphere():
    """L4: the length of the mixture, and how differently a component is removed."""
    rng = np.random.default_rng(0)
    common = on_sphere(rng.standard_normal((1, 20)))[0]
    _, mixed = discourse_vectors(10, 20, rng, common=common, beta=0.5)
    simulation = simulate(Settings(discourse=3.0, beta=0.5, n_sentences=400), 0)
    X = sums(
        simulation.weights(simulation.a()) * simulation.model.vectors[simulation.sentences.words],
        simulation.sentences,
    )
    along = X @ first_component(X)
    return (
        f"β = .5 gives ‖c‖ = {np.linalg.norm(mixed[0]):.3f}; Algorithm 1 removes multiples of u "
        f"whose standard deviation is {along.std() / abs(along.mean()):.2f} of their mean"
    )


def _component_and_mean():
    """L5: the first singular vector, the mean, and c0."""
    parts = []
    base = Settings(norm=5.0, discourse=3.0, n_sentences=400)
    for name, settings in (
        ("c0 in the model", replace(base, beta=0.5)),
        ("neither", base),
        ("no c0, words with a mean of length 1.5", replace(base, lean=1.5)),
    ):
        simulation = simulate(settings, 0)
        X = sums(
            simulation.weights(simulation.a())
            * simulation.model.vectors[simulation.sentences.words],
            simulation.sentences,
        )
        u, mean = first_component(X), on_sphere(X.mean(axis=0)[None])[0]
        along = abs(u @ simulation.common)
        parts.append(f"{name}: {abs(u @ mean):.2f} and {along:.2f}")
    return f"cosines of u with the mean and with that direction; {'; '.join(parts)}"


def _alpha_of(a, n_words):
    """α for which a = (1 - α) / (α Z), Z the number of words."""
    return 1 / (1 + a * n_words)


def loose_steps():
    """L1 to L7 as rows of a table."""
    from sif_theory import P, nearest_a, subsampling, subsampling_code

    sif = 1e-4 / (1e-4 + P)
    ratio = subsampling(np.array([0.01, 0.05])) / (1e-4 / (1e-4 + np.array([0.01, 0.05])))
    difference, (a, distance) = np.abs(subsampling(P) - sif).max(), nearest_a()
    alphas = ", ".join(
        f"a = {a_given:g} and {n:,} words: α = {_alpha_of(a_given, n):.4f}"
        for a_given, n in ((1e-3, 400_000), (1e-4, 400_000), (1e-3, 2_200_000))
    )
    return [
        HEAD,
        ["L1", "Z is a constant, so its slope is dropped", "at 0 the slope of log Z is μ, the mean "
         "of all vectors: the gradient is the weighted sum of centred vectors", _centring()],
        ["L2", "first-order expansion at c = 0, maximised over ‖c‖ = 1", "0 is not on the sphere, "
         "and the step is not small", _expansion()],
        ["L3", "frequent words weigh little", "the weight r_w is the posterior probability that "
         "the discourse, not the word's frequency, produced w; the formula a / (a + p) holds only "
         "at c = 0, where all words have the same share of Z",
         _posteriors()],
        ["L4", "c0, c_s and their mixture all have length 1", "the mixture has √(β² + (1 − β)²), "
         "and ⟨c, c0⟩ is the same for all sentences, so one constant vector would be removed",
         _twice_the_sphere()],
        ["L5", "the first singular vector is c0", "without centring it is close to the direction "
         "of the mean sentence vector, whether that mean comes from c0 or from the word vectors",
         _component_and_mean()],
        ["L6", "a = (1 − α)/(αZ)", "with Z equal to the number of words, the a that works best "
         "implies that almost no word is drawn by frequency alone", alphas],
        ["L7", "sub-sampling is nearly SIF's weights", "words are deleted before windows are cut, "
         "and word2vec.c has (√(p/t) + 1)t/p with t = 1e-3",
         f"largest difference {difference:.3f}; at p = .01 and .05 sub-sampling keeps "
         f"{ratio[0]:.1f} and {ratio[1]:.1f} times the weight of SIF; the closest a is {a:.1e}, "
         f"with a largest difference of {distance:.3f}; the rule of word2vec.c differs by "
         f"{np.abs(subsampling_code(P) - sif).max():.2f}"],
    ]  # fmt: skip
