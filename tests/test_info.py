"""`sentemb info`: what a model, an index or a prepared log is."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log, made_up_model, made_up_pair_model

from sentemb import ClickLog, SentembError, prepare_log, train
from sentemb.analysis.overview import overview
from sentemb.analysis.prepared_overview import prepared_overview
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.models.parameters import stored_parameters, trained_parameters
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.confidence import Confidence
from sentemb.search.index import Index
from sentemb.search.ranking.recipe import MEANINGS, PARTS
from sentemb.system import checked_files

LOG = "".join(f"red thing {k % 5}\tred title {k % 15}\n" for k in range(60))


def info(*arguments, code=0):
    result = CliRunner().invoke(main, ["info", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A trained model with a ranker and its index, a pair model, a model that was never trained."""
    folder = tmp_path_factory.mktemp("info")
    (folder / "log.tsv").write_text(LOG)
    (folder / "dev.tsv").write_text("red thing 9\tred title 1\nred thing 8\tred title 2\n")
    arguments = ["train", "log.tsv", "--dev", "dev.tsv", "--model", "bag", "--cells", "4"]
    arguments += ["--epochs", "1", "-o", "model", "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["pairs"] == 15 and summary["ranker"]["recipe"]["weights"]
    made_up_pair_model(["red hat"]).save_pretrained(folder / "pair")
    bag = made_up_model(("bag", {}), ["red hat", "blue hat"], cells=3, dtype=np.float32)
    bag.save_pretrained(folder / "bare")
    Index.build(bag, ["red hat", "blue hat"], dtype="int8").save(folder / "index")
    return folder


def test_a_model_with_a_ranker(place):
    found = json.loads(info(place / "model", "--json").stdout)
    model = SentenceEncoder.from_pretrained(place / "model")
    assert found["kind"] == "model with two towers" and found["model"] == "bag"
    assert found["settings"]["cells"] == 4 and found["training"]["pairs"] == 15
    assert found["trained_parameters"] == trained_parameters(model)
    assert found["stored_parameters"] == stored_parameters(model)
    assert found["trigrams"] == len(model.vocabulary.trigrams)
    files = [path for path in (place / "model").rglob("*") if path.is_file()]
    assert found["disk_bytes"] == sum(path.stat().st_size for path in files)
    arrays = [array for tower in model.towers.each.values() for array in tower.values()]
    assert found["memory_bytes"] == sum(array.nbytes for array in arrays)
    assert found["dev"]["mrr@10"] >= 0 and "mrr@10" in found["ranker_dev"]["sum"]
    text = info(place / "model").stdout
    for part in found["weights"]:
        assert re.search(rf"\d  {PARTS[part]}  +{re.escape(MEANINGS[part])}", text)
    assert "on 15 pairs" in text and text.splitlines()[-1] == f"next: {found['next']}"


def test_what_lacks_a_part_has_no_line_of_it(place):
    bare = info(place / "bare").stdout
    assert "trained     no" in bare and "best on dev" not in bare and "sum of" not in bare
    assert f"next: sentemb tune {place / 'bare'} DEV --log LOG" in bare
    pair = info(place / "pair").stdout
    assert "pair model" in pair and "wordembed" in pair and "sentemb score" in pair


def test_an_index(place):
    found = overview(place / "index")
    assert (found.kind, found.titles, found.dtype) == ("index", 2, "int8")
    assert found.weights == {"cosine": 1.0} and not found.clicks and not found.calibrated
    assert found.memory_bytes > overview(place / "bare").memory_bytes
    assert "titles      2, vectors in int8" in str(found)
    assert str(found).endswith(f'next: sentemb search {place / "index"} "a query"')


@pytest.mark.parametrize(
    ("never", "typed", "told"),
    [
        (0.1, None, "calibrated"),
        (0.3, None, "not shown, as a constant is as good"),
        (
            0.1,
            0.3,
            "calibrated for queries that nobody typed before; not shown, as a constant is as good "
            "for queries that the log has clicks for",
        ),
    ],
)
def test_an_index_says_for_which_queries_it_has_a_confidence(place, tmp_path, never, typed, told):
    index = Index.open(place / "index")
    typed_fit = None if typed is None else Confidence(0.0, 1.0, 30, typed, 0.2)
    index.confidence = Confidence(0.0, 1.0, 60, never, 0.2, typed_fit)
    index.save(tmp_path / "index")
    found = overview(tmp_path / "index")
    assert found.calibrated and f"confidence  {told}\n" in str(found)
    assert list(found.confidence.values()) == [b < 0.2 for b in (never, typed) if b is not None]


def test_a_ranking_says_whether_it_has_a_floor(place):
    # Two dev queries are too few for one.
    assert re.search(r"\nfloor +none\n", info(place / "model").stdout)
    assert overview(place / "pair").floor is None and overview(place / "bare").floor is None


def test_a_prepared_log(place):
    (place / "b.tsv").write_text("a b\tTitle\n\nbad line\n")
    (place / "c.tsv").write_text("a b\tTitle\t4\na\tOther\n")
    log = prepare_log([place / "b.tsv", place / "c.tsv"], place / "log", skip_bad_lines=True)
    with pytest.raises(SentembError, match=r"is a prepared log; open it with PreparedLog.open"):
        overview(place / "log")
    found = prepared_overview(place / "log", verify=False)
    counts = found.lines, found.bad_lines, found.pairs, found.queries, found.titles
    assert counts == (5, 2, 2, 2, 2) and list(found.sources.values()) == [2, "b.tsv", "c.tsv"]
    assert found.fingerprint == log.identity
    told = info(place / "log").stdout
    assert "2 files, b.tsv to c.tsv" in told and "5, 2 of them bad and left out" in told
    assert told.splitlines()[-1] == f"next: sentemb train {place / 'log'} -o MODEL"
    assert json.loads(info(place / "log", "--json").stdout)["kind"] == "prepared log"


def test_a_training_in_parts_says_so(place):
    train(made_up_log(60), cells=4, epochs=1, batch_size=8, parts=2, output=place / "parts")
    assert re.search(r"trained .* seed 0, parts 2, meetings 15\n", info(place / "parts").stdout)
    assert "parts 1" not in info(place / "model").stdout


@pytest.mark.parametrize("folder", ["index", "log"])
def test_all_of_a_large_file_is_read_when_asked(place, tmp_path, monkeypatch, folder):
    """Damage between the samples of a file that is larger than they are."""
    monkeypatch.setattr(checked_files, "_SAMPLE", 2)
    titles = [f"word{number} title" for number in range(300)]
    if folder == "log":
        write_click_log(ClickLog.from_pairs(zip(titles, titles, strict=True)), tmp_path / "log.tsv")
        prepare_log(tmp_path / "log.tsv", tmp_path / folder)
    else:
        Index.build(SentenceEncoder(place / "bare"), titles).save(tmp_path / folder)
    info(tmp_path / folder, "--verify")
    titles = tmp_path / folder / "titles.txt"
    raw = bytearray(titles.read_bytes())
    raw[5] ^= 1
    titles.write_bytes(raw)
    info(tmp_path / folder)
    assert "titles.txt: the " in info(tmp_path / folder, "--verify", code=1).stderr


def test_every_part_has_a_meaning():
    assert MEANINGS.keys() == PARTS.keys()


def test_mistakes(place):
    assert "holds no model, index or prepared log" in info(place, code=1).stderr
    (place / "damaged").mkdir()
    (place / "damaged/config.json").write_text("{")
    assert "damaged" in info(place / "damaged", code=1).stderr
