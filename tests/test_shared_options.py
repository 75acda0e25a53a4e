"""Options that several commands have: one name for one thing, and one mechanism for each."""

import json

import click
import pytest
from click.testing import CliRunner

from sentemb.cli import COMMANDS, main
from sentemb.cli.options import Command, Written, command, threads_option
from sentemb.system.meant_names import answering_names
from sentemb.system.parallel import Workers, available_threads
from sentemb.system.terminal import is_silenced, note

LOG = "".join(f"query {k}\ttitle {k % 7}\n" for k in range(40))
# One prints nothing but an address, the other what the commands print that it runs.
WITHOUT_JSON = {"serve", "start"}


def _commands():
    """(name, command) of every command and sub-command."""
    for name in COMMANDS:
        found = main.get_command(click.Context(main), name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {child}", one) for child, one in found.commands.items())
        else:
            yield name, found


ALL = dict(_commands())


@pytest.mark.parametrize(
    ("name", "given", "ours"),
    [
        ("search", "--limit", "-k"),
        ("search", "-n", "-k"),
        ("search", "--topK", "-k"),
        ("search", "--filter", "--where"),
        ("search", "--order-by", "--sort"),
        ("search", "--facet-by", "--facets"),
        ("rank", "--size", "-k"),
        ("train", "--out", "-o"),
        ("train", "--lr", "--learning-rate"),
        ("evaluate", "--baseline", "--compare-with"),
    ],
)
def test_an_option_of_another_program_is_answered_with_ours(name, given, ours):
    said = CliRunner().invoke(main, [name, given, "3"]).output
    assert f"No such option '{given}'. Did you mean '{ours}'?" in said


def test_an_argument_of_another_package_is_answered_with_ours():
    @answering_names
    def search(query, k=10, where=None):
        return inner() if where else (query, k)

    def inner(a):
        return a

    assert search("a", k=3) == ("a", 3)
    for given, ours in (("top_k", "k"), ("limit", "k"), ("filter", "where"), ("n_results", "k")):
        with pytest.raises(
            TypeError, match=f"unexpected keyword argument '{given}'; write {ours}$"
        ):
            search("a", **{given: 3})
    for wrong in ({"zzz": 1}, {"where": 1}):
        with pytest.raises(TypeError) as raised:
            search("a", **wrong)
        assert "write" not in str(raised.value)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text(LOG)
    return path


@pytest.mark.parametrize("name", ALL)
def test_a_command_has_the_shared_options_by_their_names(name):
    parameters = ALL[name].params
    options = {one.name: one for one in parameters if isinstance(one, click.Option)}
    names = {spelt for one in options.values() for spelt in one.opts}
    assert "--quiet" in names
    assert ("--json" in names) == (name not in WITHOUT_JSON)
    written = [one for one in parameters if isinstance(one.type, Written)]
    assert all(isinstance(one, click.Option) for one in written)
    assert not written or {"-o", "--output", "--force"} <= names
    short = {"-o": "--output", "-k": "--top-k"}
    for one in options.values():
        for spelt in one.opts:
            if spelt in short:
                assert short[spelt] in one.opts
    metavars = {"--log": "LOG", "--start-from": "MODEL", "--catalogue": "TITLES"}
    for one in options.values():
        if one.opts[0] in metavars and name != "import":
            assert one.metavar == metavars[one.opts[0]]
    former = {"--metric", "--cutoffs", "--top", "--n-results", "--out", "--word-vectors", "-q"}
    assert not names & former


@pytest.mark.parametrize("name", ALL)
def test_the_help_has_no_section_for_quiet_alone(name):
    sections = run(*name.split(), "--help").stdout.split("\n\n")
    section = next(section for section in sections if "\n  --quiet " in section)
    assert "\n  -h, --help " in section and section.count("\n  -") > 2


def test_quiet_leaves_results_and_errors(log, tmp_path):
    said = run("split", log, "-o", tmp_path / "parts", "--dev", "20%")
    assert "lines to train" in said.stdout
    assert "query" in (tmp_path / "parts/pairs.tsv").read_text()
    again = ("split", log, "-o", tmp_path / "parts", "--dev", "20%", "--force", "--quiet")
    assert run(*again).output == ""
    assert run("split", log, "-o", tmp_path / "parts", "--quiet", code=1).stderr.startswith("Error")
    assert not is_silenced()


def test_quiet_silences_notes():
    @command("noisy")
    def noisy():
        note("a note")
        click.echo("a result")

    assert CliRunner().invoke(noisy, []).output == "a note\na result\n"
    assert CliRunner().invoke(noisy, ["--quiet"]).output == "a result\n"
    assert isinstance(noisy, Command)


def test_json_is_the_summary_of_a_command_that_writes(log, tmp_path):
    out = tmp_path / "parts"
    found = json.loads(run("split", log, "-o", out, "--dev", "20%", "--json").stdout)
    assert found["output"] == str(out) and found["titles"] == 7
    assert sum(found["lines"].values()) == 40
    out = tmp_path / "log.jsonl"
    table = tmp_path / "clicks.csv"
    table.write_text("query,title\nq,t\nq,\n")
    found = json.loads(run("import", table, "-o", out, "--json").stdout)
    assert (found["rows"], found["lines"]) == (2, 1)
    assert sum(found["left_out"].values()) == 1
    refused = run("import", table, "-o", "-", "--json", code=2).stderr
    assert "standard output holds the output" in refused


def test_threads_are_the_default_of_all_that_a_command_calls():
    seen = []

    @command("counted")
    @threads_option()
    def counted():
        seen.append((available_threads(), Workers().threads, Workers(3).threads))

    before = available_threads()
    assert CliRunner().invoke(counted, ["--threads", "5"]).exit_code == 0
    assert CliRunner().invoke(counted, []).exit_code == 0
    assert seen == [(5, 5, 3), (before, before, 3)]
    assert available_threads() == before
    wrong = CliRunner().invoke(counted, ["--threads", "0"])
    assert "0 is not in the range 1<=x<=1024" in wrong.output
