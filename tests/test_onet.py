"""The O*NET importer, on a small made-up release and on the real one where it is at hand."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import write_onet

from sentemb import SentembError
from sentemb.cli import COMMANDS, main
from sentemb.data.click_log import read_click_log
from sentemb.data.importers.onet import import_onet, name_key
from sentemb.data.judged_set import read_judged_set

REAL = Path(__file__).parents[2] / "shared" / "data" / "onet_27_0_text"

N_OCCUPATIONS = 30


def code_of(number):
    return f"{11 + number}-1011.00"


def write_release(folder):
    """A release in the O*NET format: 30 trades, four names each, one name shared by all."""
    titles, alternates, reported, related = [], [], [], []
    for number in range(N_OCCUPATIONS):
        code, trade = code_of(number), f"{'BCDFG'[number % 5]}on{'klmnpr'[number // 5]}ing"
        titles.append(f"{code}\t{trade} Workers\tThey do {trade}.")
        alternates.append(f"{code}\t{trade} Operator\tn/a\t08")
        alternates.append(f"{code}\tOperators, {trade}\t{trade[:4]}OP\t08")
        alternates.append(f"{code}\tHelper\tn/a\t08")
        reported.append(f"{code}\tMaster of {trade}\tY")
        reported.append(f"{code}\t{trade} Operator\tN")
        for step in range(1, 11):
            tier = ("Primary-Short", "Primary-Long", "Supplemental")[min(2, (step - 1) // 3)]
            related.append(f"{code}\t{code_of((number + step) % N_OCCUPATIONS)}\t{tier}\t{step}")
    # As Windows writes them, since some releases come that way.
    write_onet(folder, titles, alternates, reported, related, end="\r\n")
    return folder


@pytest.fixture
def release(tmp_path):
    return write_release(tmp_path / "release")


def judgments(judged):
    """Query text -> title -> grade."""
    return {
        query: {
            judged.titles[title]: int(grade)
            for title, grade in zip(
                judged.title_index[start:stop], judged.grade[start:stop], strict=True
            )
        }
        for query, (start, stop) in zip(judged.queries, pairwise(judged.offsets), strict=True)
    }


def guise(text):
    """A name without order and number, by a rule of its own: words without a final s or es."""
    return frozenset(re.sub(r"(?<=..)e?s$", "", word) for word in re.findall(r"\w+", text.lower()))


def assert_apart(*lists_of_queries):
    for number, queries in enumerate(lists_of_queries):
        for others in lists_of_queries[:number]:
            assert not {guise(query) for query in queries} & {guise(query) for query in others}


def test_import(release, tmp_path):
    out = tmp_path / "out"
    counts = import_onet(release, out, dev=8, test=0.2)
    log = read_click_log(out / "pairs.tsv")
    dev, test = read_judged_set(out / "dev"), read_judged_set(out / "test")
    # Distinct names: of each trade the operator, the short title and the master; and the helper.
    assert counts == {
        "pairs": len(log.clicks),
        "training_queries": len(log.queries),
        "titles": N_OCCUPATIONS,
        "dev_queries": 8,
        "test_queries": round(0.2 * (3 * N_OCCUPATIONS + 1)),
    }
    assert len(dev.queries) == counts["dev_queries"]
    assert len(test.queries) == counts["test_queries"]
    assert dev.query_ids[0] == "dev1" and test.query_ids[0] == "test1"
    assert len(dev.titles) == len(test.titles) == N_OCCUPATIONS
    assert "n/a" not in log.queries
    assert_apart(log.queries, dev.queries, test.queries)
    # A name of all occupations is not judged, but it is trained on.
    assert "Helper" in log.queries
    assert log.clicks.max() == 1


def test_grades_and_candidates(release, tmp_path):
    import_onet(release, tmp_path / "out", dev=30, test=30)
    title_of = {}
    for line in (release / "Occupation Data.txt").read_text().splitlines()[1:]:
        code, title, _ = line.split("\t")
        title_of[code] = title
    codes = list(title_of)
    for part in ("dev", "test"):
        for query, grades in judgments(read_judged_set(tmp_path / "out" / part)).items():
            assert 15 <= len(grades) <= 25
            (filed,) = (title for title, grade in grades.items() if grade == 3)
            assert filed.split()[0][:4].lower() in query.lower()
            number = list(title_of.values()).index(filed)
            around = [title_of[codes[(number + step) % len(codes)]] for step in range(1, 11)]
            assert {title for title, grade in grades.items() if grade == 2} == set(around[:3])
            others = {title for title, grade in grades.items() if grade == 1}
            assert others < set(around[3:]) and len(others) == 4


def test_titles_that_only_share_words_are_judged_not_relevant(tmp_path):
    release = write_release(tmp_path / "release")
    decoys = [f"99-{number}.00\tOperators of machine {number}\tx" for number in range(4)]
    with open(release / "Occupation Data.txt", "a") as file:
        file.writelines(f"{line}\n" for line in decoys)
    import_onet(release, tmp_path / "out", dev=30, test=30)
    checked = 0
    for query, grades in judgments(read_judged_set(tmp_path / "out" / "dev")).items():
        if "Operator" in query:
            assert [grades[line.split("\t")[1]] for line in decoys] == [0] * 4
            checked += 1
    assert checked > 3


def test_the_same_settings_give_the_same_files(release, tmp_path):
    def files(name, seed):
        out = tmp_path / name
        import_onet(release, out, dev=5, test=5, seed=seed)
        return {path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")}

    assert files("one", 0) == files("two", 0)
    assert files("three", 1) != files("one more", 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nurse, Registered", "Registered Nurses"),
        ("Coach", "coaches"),
        ("Company Secretary", "Secretaries of Company of"),
        ("Boss", "Bosses"),
        ("Driver's Aide", "Driver Aides"),
        ("Firemen", "Fireman"),
        ("Salespeople", "Salesperson"),
        ("Knife Sharpener", "Sharpener-knives"),
        ("RNs", "RN"),
        ("Gas Fitter", "Gases Fitters"),
    ],
)
def test_names_in_another_order_or_number_have_the_same_key(one, other):
    if "of" in other:
        one += " of"
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("CEO", "CFO"), ("Painter", "Printer"), ("Cook", "Cook Helper"), ("?", "!")]
)
def test_other_names_have_other_keys(one, other):
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize(
    "name",
    [
        "Alternate Titles.txt",
        "Sample of Reported Titles.txt",
        "Occupation Data.txt",
        "Related Occupations.txt",
    ],
)
def test_missing_and_changed_files(release, tmp_path, name):
    path = release / name
    lines = path.read_text().splitlines()

    def error():
        with pytest.raises(SentembError) as caught:
            import_onet(release, tmp_path / "out", dev=5, test=5)
        assert "https://www.onetcenter.org/database.html" in str(caught.value)
        assert not (tmp_path / "out").exists()
        return str(caught.value)

    path.write_text("\n".join([lines[0].replace("O*NET-SOC", "SOC"), *lines[1:]]))
    assert error().startswith(f"{path}:1: no column ")
    path.write_text("\n".join([*lines[:2], "half\ta"]))
    assert error().startswith(f"{path}:3: 2 columns, not ")
    path.write_text("")
    assert error().startswith(f"{path}:1: no column 'O*NET-SOC Code'")
    path.unlink()
    assert error().startswith(f"{path}: no such file")


def test_an_occupation_of_another_release(release, tmp_path):
    path = release / "Alternate Titles.txt"
    path.write_text(path.read_text() + "99-9999.00\tWizard\tn/a\t08\n")
    with pytest.raises(SentembError, match=r"Titles.txt:92: the occupation '99-9999.00' is not"):
        import_onet(release, tmp_path / "out", dev=5, test=5)


@pytest.mark.parametrize("sizes", [(0, 5), (5, -1), (5, 2.5), (60, 60), (0.5, 0.5)])
def test_sizes_that_cannot_be(release, tmp_path, sizes):
    with pytest.raises(SentembError, match="size"):
        import_onet(release, tmp_path / "out", dev=sizes[0], test=sizes[1])


def test_command(release, tmp_path):
    out = tmp_path / "out"
    arguments = ["data", "onet", str(release), "-o", str(out), "--dev", "0.05", "--test", "5"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert "dev queries: 5\n" in result.stdout
    readme = (out / "README.md").read_text()
    assert "O*NET 99.1 Database" in readme
    assert "CC BY 4.0" in readme and "USDOL/ETA" in readme

    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 1
    assert again.stderr.count("\n") == 1 and "--force" in again.stderr
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0


def test_help_line():
    result = CliRunner().invoke(main, ["data", "--help"])
    assert COMMANDS["data"] in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not REAL.is_dir(), reason="the O*NET 27.0 text files are not in ../shared/data/onet_27_0_text"
)
def test_the_real_release(tmp_path):
    counts = import_onet(REAL, tmp_path / "out")
    log = read_click_log(tmp_path / "out" / "pairs.tsv")
    dev, test = (read_judged_set(tmp_path / "out" / part) for part in ("dev", "test"))
    assert counts["titles"] == 1016
    assert counts["pairs"] == len(log.clicks) > 45_000
    assert (len(dev.queries), len(test.queries)) == (1500, 3000)
    assert_apart(log.queries, dev.queries, test.queries)
    for judged in (dev, test):
        for grades in judgments(judged).values():
            assert 15 <= len(grades) <= 25
            assert 3 in grades.values() and 0 in grades.values()
