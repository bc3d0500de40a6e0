"""What a first look at a run shows: one table, no empty section, worlds told apart, marks that differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from inquitree_gym.errors import plural_of
from inquitree_gym.results import load_run
from inquitree_gym.results.figures import bars, levels
from inquitree_gym.results.report import ReportOptions, build_report
from inquitree_gym.results.sections import all_sections
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import own_parts
from inquitree_gym.results.tables import as_csv
from inquitree_gym.results.templating import write_text
from inquitree_gym.runner import make_study, run_study
from tests.contract.command_line import inquitree


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two runs: in drawn worlds and in the actual one."""
    folder = tmp_path_factory.mktemp("worlds")
    for name, world in (("drawn", "any"), ("actual", "actual")):
        run_study(make_study(agents=("random", "oracle"), trees=("8",), seeds=1, rules={"world": world}), folder / name)
    return [folder / "drawn", folder / "actual"]


def test_runs_in_different_worlds_are_not_pooled(worlds: list[Path]):
    report = build_report([load_run(each) for each in worlds])
    assert set(report.names.values()) == {"random", "oracle", "random, world=actual", "oracle, world=actual"}
    assert [row.episodes for row in report.pooled] == [1, 1, 1, 1]


def test_agents_without_a_model_have_no_section_about_training_cutoffs(worlds: list[Path]):
    sections = all_sections(build_report([load_run(worlds[0])]))
    assert "cutoff" not in [each.anchor for each in sections]
    assert all(each.charts or each.tables or each.words for each in sections)


def test_report_prints_one_table_and_all_of_them_with_an_option(worlds: list[Path]):
    short, long = inquitree("report", worlds[0]), inquitree("report", worlds[0], "--all")
    assert "Results" in short.out
    assert "Steps" not in short.out
    assert "unaided coverage: " not in short.out
    assert "--all prints the other tables" in short.out
    assert "Steps" in long.out
    assert "unaided coverage: " in long.out


def test_tables_in_a_file_fit_100_columns(tmp_path: Path):
    trees = ("2", "8", "11", "12", "17")
    for name, world in (("drawn", "any"), ("actual", "actual")):
        rules = {"world": world}
        study = make_study(agents=("copyist", "oracle"), trees=trees, fake_level=(0, 3), seeds=1, rules=rules)
        run_study(study, tmp_path / name)
    brief = inquitree("report", tmp_path / "drawn", tmp_path / "actual", "--compare").out
    assert max(map(len, brief.splitlines())) <= 100
    assert "[" not in brief.partition("Paired")[0], "--all prints the intervals"
    assert brief.count("world=actual") >= 4, "no word is broken"
    assert brief.count("[") == len(re.findall(r"\[-?\d\.\d\d, -?\d\.\d\d\] ", brief)) > 0
    done = inquitree("report", tmp_path / "drawn", "--all")
    assert max(map(len, done.out.splitlines())) <= 100
    first = done.out.partition("Answers and coverage")[0]
    assert first.count("[") == first.count("]") == len(re.findall(r"\[-?\d\.\d\d, -?\d\.\d\d\] ", first)) > 0


def test_no_chart_names_a_measure_with_underscores(worlds: list[Path]):
    sections = all_sections(build_report([load_run(worlds[0])], ReportOptions(paired=True)))
    captions = [chart.caption for each in sections for chart in each.charts]
    assert "difference in unaided coverage" in " ".join(captions)


def test_only_what_differs_is_named():
    assert own_parts(["reader, world=actual", "reader"]) == ["world=actual", ""]
    assert own_parts(["3n", "3n"]) == ["", ""]
    assert own_parts(["3n", "5"]) == ["3n", "5"]
    assert own_parts([]) == []


def test_bars_below_zero_are_in_view():
    estimate = Estimate(-0.1, -0.3, 0.1, 5, 5)
    axes = Figure().subplots()
    bars("return", "return", {"a": (estimate,)}).draw(axes)
    assert axes.get_xlim()[0] < -0.3
    few = Estimate(0.5, None, None, 2, 2, (0.0, 1.0))
    bars("return", "return", {"a": (few,)}).draw(other := Figure().subplots())
    assert other.get_xlim()[0] < -0.02, "the mark of a task at 0 stands clear of the names"


def test_names_of_several_things_end_in_one_s():
    assert [plural_of(noun) for noun in ("tools", "fake level", "axis", "study")] == [
        "tools", "fake levels", "axes", "studies",
    ]  # fmt: skip


def test_series_of_one_colour_have_different_marks():
    points = [(0.0, Estimate(0.5, 0.4, 0.6, 5, 5))]
    axes = Figure().subplots()
    levels("return", ("level", "return"), {f"a{i}": points for i in range(14)}).draw(axes)
    marks = [(line.get_color(), line.get_marker()) for line in axes.lines if not str(line.get_label()).startswith("_")]
    assert len(set(marks)) == 14


def test_headings_of_csv_start_no_formula():
    (line,) = as_csv(["=cmd|'/C calc'!A1", "agent"], []).splitlines()
    assert not line.lstrip('"').startswith("=")
    assert line.endswith(",agent")


def test_control_characters_are_shown_in_files(tmp_path: Path):
    write_text(tmp_path / "a.csv", as_csv(["agent"], [["\r=1\x1b[31m\u202e"], ["two"]]))
    assert (tmp_path / "a.csv").read_bytes() == b"agent\n'\\u000d=1\\u001b[31m\\u202e\ntwo\n"


@pytest.mark.parametrize("name", ["report.md", "report.CSV", "r.pdf"])
def test_a_report_is_no_single_file_of_another_format(worlds: list[Path], tmp_path: Path, name: str):
    done = inquitree("report", worlds[0], "--out", tmp_path / name)
    assert done.status == 2
    assert f"'{name}' would be a folder; name an .html file" in done.err
    assert list(tmp_path.iterdir()) == []
