"""Every declared bound: what is below and above it is refused, what is at it is not."""

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log, made_up_model
from reliability import battery_bounds
from reliability.battery_cases import WHOLE
from reliability.battery_shop import SERVE
from reliability.battery_shop import WHOLE as OF_SHOP

import sentemb
from sentemb import SentembError
from sentemb.cli import main
from sentemb.gradients.check_options import FORM, OBJECTIVE, SEED
from sentemb.gradients.checks import check_parameters
from sentemb.models.towers.registry import ENCODERS
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.skip_gram import SETTINGS, train_word_vectors
from sentemb.models.vectors.vector_options import HYPERPARAMETERS
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.writing import write_word_vectors
from sentemb.training.families import family_of, model_names

LOG = made_up_log()


@pytest.fixture
def folder(tmp_path):
    """What a command reads before it looks at the numbers."""
    (tmp_path / "log.tsv").write_text("".join(f"{title}\t{title}\n" for title in LOG.titles))
    (tmp_path / "texts.txt").write_text("\n".join(LOG.titles))
    words = sorted({word for title in LOG.titles for word in title.split()})
    vectors = WordVectors(words, np.eye(len(words), 4, dtype=np.float32))
    write_word_vectors(vectors, tmp_path / "vectors")
    made_up_model(("bag", {}), LOG.titles).save_pretrained(tmp_path / "bag")
    return tmp_path


def test_a_command_refuses_what_an_option_forbids(folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    for case in battery_bounds.cases(WHOLE | OF_SHOP | {"serve": SERVE}):
        result = CliRunner().invoke(main, list(case.argv))
        assert result.exit_code in case.codes, (case.name, result.output, result.exception)
        assert case.check(result) is None, case.name
    assert sorted(folder.iterdir()) == before


def outside(declared):
    """Values of Python that a declaration forbids."""
    if not declared.optional:
        yield None
    yield from (object(), [], {}, "no such word", 1j, float("nan"), 10**400)
    if declared.kind is not bool:
        yield True
    yield from (bound for bound in (declared.above, declared.below) if bound is not None)
    step = 1 if declared.kind is int else 1e-9
    if declared.kind is int:
        yield 1.5
    if declared.least is not None:
        yield declared.least - step
    if declared.most is not None:
        yield declared.most + max(step, declared.most * step)


def of_models():
    """Every model and hyper-parameter, and the functions that take one of them."""
    for name in model_names():
        for declared in family_of(name).parameters_of(name):
            yield declared, lambda name=name, **given: sentemb.train(LOG, **{"model": name} | given)
    for declared in (*ENCODERS.parameters, *check_parameters(), FORM, OBJECTIVE, SEED):
        yield declared, sentemb.gradcheck
    for declared in SETTINGS.values():
        yield declared, lambda **given: train_word_vectors(LOG, **given)
    vectors = WordVectors(["a"], np.ones((1, 4), np.float32))
    for declared in HYPERPARAMETERS:
        yield declared, lambda **given: SIF(vectors, **given)


def test_python_refuses_what_a_declaration_forbids():
    for declared, function in of_models():
        for value in outside(declared):
            with pytest.raises(SentembError) as caught:
                function(**{declared.name: value})
            said = str(caught.value)
            assert declared.name in said and said.isprintable() and len(said) < 300, said


def test_a_declaration_allows_its_bounds():
    for declared, _ in of_models():
        for bound in (declared.least, declared.most):
            if bound is not None and not declared.choices:
                given = [bound] if declared.many else bound
                assert declared.checked(given) in (bound, (bound,))


def test_few_declarations_allow_nothing():
    """All others begin at 1, two pairs of a mini-batch aside, or above 0."""
    numbers = [one for one, _ in of_models() if one.kind in (int, float) and not one.choices]
    assert {one.name for one in numbers if one.least is not None and one.least < 1} == {
        *("bag_dim", "components", "dropout", "hard_negatives", "momentum", "seed"),
        "word_features",
    }
    assert {one.name: one.least for one in numbers if one.least not in (None, 0, 1)} == {
        "batch_size": 2
    }
    assert {one.above for one in numbers} == {None, 0}
