"""What Palangi et al. leave open, and what was chosen here: a table of docs/paper.md."""

from collections.abc import Iterator

from paper_models import RATES, SETTINGS

from sentemb.training.towers.settings import PRESETS, Settings


def open_questions() -> Iterator[list[str]]:
    """Rows of place, question and choice; the numbers are those of the preset ``paper``."""
    settings = Settings(**PRESETS["paper"])
    rates = ", ".join(map(str, RATES))
    yield ["place", "what the paper leaves open", "choice here"]
    yield [
        "IV", "The value of γ, which it sets on a held-out set",
        f"{settings.gamma:g}, not tuned",
    ]  # fmt: skip
    yield [
        "Algorithm 1", "The step sizes",
        f"The best on dev among {rates}, one for each kind of model",
    ]  # fmt: skip
    yield [
        "Algorithm 1", "The threshold th_G of the gradient's norm",
        f"{settings.max_norm:g}, over all arrays of a tower; the loss is the mean of a mini-batch",
    ]  # fmt: skip
    yield [
        "Algorithm 1", "The number of epochs",
        f"{settings.epochs}; with dev the best epoch is kept",
    ]  # fmt: skip
    yield ["IV", "The size of a mini-batch", f"{settings.batch_size} pairs"]
    yield [
        "Algorithm 1", "The steps T of truncated back-propagation",
        "None: every text is followed to its first word",
    ]  # fmt: skip
    yield [
        "IV, Figure 3", "How negatives are drawn from the training data",
        "From the clicked titles of the other pairs of the mini-batch, drawn again in every update",
    ]  # fmt: skip
    yield [
        "Algorithm 1", "\"Small random numbers\" to begin with",
        "See `sentemb.models.towers`; one draw, the seed 0",
    ]  # fmt: skip
    yield [
        "IV", "How 2 % of the updates are rounded", "Up, at both ends",
    ]  # fmt: skip
    yield [
        "V-A.2", "How large a \"large enough\" change is",
        "Above the mean change of all cells in the text; [swept above](#rules-and-what-we-chose)",
    ]  # fmt: skip
    yield [
        "V-A.2", "Whether the most active cells have the largest outputs, or the largest in size",
        "In size, as `sentemb keywords`; the scales of Figures 6, 11 and 12 in version 2 begin at "
        "0 to 0.05, so the paper took the largest with their sign or drew sizes. Tables I, II and "
        "V to X have both",
    ]  # fmt: skip
    yield [
        "V-A, C, E", "The size of the models of Tables I, II and V to X and of Appendix C",
        "32 cells, as in Figures 4 and 5; by its ticks version 2 has 32 in Figures 8 to 10 too",
    ]  # fmt: skip
    yield [
        "V-B.1, Figure 7", "The sizes of the two models",
        f"Equal numbers of parameters: {SETTINGS['lstm-96']['cells']} cells and "
        f"{SETTINGS['rnn-288']['cells']} neurons",
    ]  # fmt: skip
    yield [
        "E-A", "How the last five words of the second title become one word",
        "Joined by hyphens; in Tables V to X that word counts as a content word",
    ]  # fmt: skip
    yield [
        "V-B.1", "The sizes of Doc2Vec's other windows", "3 and 10",
    ]  # fmt: skip
    yield [
        "V-B.1", "The number of topics of PLSA between 100 and 500", "100, 300, 500",
    ]  # fmt: skip
