"""The report as a page: whole by itself, harmless whatever the logs hold, and with the numbers of the tables."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import unquote_plus
from xml.etree import ElementTree

import pytest

from inquitree_gym.analysis.aggregate import compare, format_estimate, summarise
from inquitree_gym.analysis.load import EpisodeCost, MissingEpisode, ReadingCounts, ScoredEpisode, ScoredRun
from inquitree_gym.errors import OptionError
from inquitree_gym.report import write_report
from inquitree_gym.report.latex import _MARKS, latex, tex
from inquitree_gym.report.sections import coverage_curve, papers, report_data, turns
from inquitree_gym.report.tables import (
    ABSENT,
    TableCell,
    as_csv,
    cell,
    counted,
    escaped,
    make_table,
    markdown,
    shaded,
    table_csv,
)
from inquitree_gym.report.vigilance import vigilance
from inquitree_gym.scoring import EpisodeScore, Estimate
from tests.analysis.test_aggregate import WHOLE, score
from tests.report.html import HOSTILE, read_page
from tests.scoring.test_trajectory import CONCLUDE, END, EXPLORE, enter, redo, result

FAKES = [enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s2"), result("s2a", 2), CONCLUDE, END]


def facts(score: EpisodeScore, coverage: tuple[float, ...] = (0.5, 0.5, 0.5, 1.0), **spent) -> ScoredEpisode:
    counts = dict.fromkeys(("replies", "corrections", "cut_short", "without_text", "retries", "refused", "unpriced"), 0)
    nothing = dict.fromkeys((field.name for field in fields(EpisodeCost)), None) | counts | {"env_seconds": 0.2}
    from collections import Counter

    reads = ReadingCounts(Counter(accepted=3, hinted=1), Counter(below_threshold=1), (0.7, 0.8, 0.9), (0.2,))
    return ScoredEpisode(score, 2, 0.5, coverage, EpisodeCost(**{**nothing, **spent}), reads, ())


def run_of(*scores: EpisodeScore, name: str = "run", missing: tuple[MissingEpisode, ...] = (), **spent) -> ScoredRun:
    return ScoredRun(Path(name), [facts(score, **spent) for score in scores], list(missing), {})


@pytest.fixture(scope="module")
def runs() -> list[ScoredRun]:
    """Two agents on six trees at two levels."""
    ours = [score(f"t{i}", 1, i % 2, agent="ours", steps=WHOLE) for i in range(6)]
    tempted = [score(f"t{i}", 1, 0, agent="ours", steps=FAKES, fake_level=3) for i in range(6)]
    floor = [score(f"t{i}", 0, 0, agent="random-menu") for i in range(6)]
    gone = MissingEpisode("t9.jsonl", "failed", "RateLimitError: try later")
    return [run_of(*ours, *tempted, *floor, missing=(gone,), dollars=0.5, unpriced=2, prompt_tokens=1200)]


@pytest.fixture(scope="module")
def files(runs: list[ScoredRun], tmp_path_factory) -> list[Path]:
    return write_report(runs, tmp_path_factory.mktemp("report") / "deep" / "out.html")


# The page


def test_a_report_is_a_page_with_markdown_and_csv_beside_it(files: list[Path]):
    assert [file.name for file in files] == [
        "out.html", "out.md", "out.csv", "out-episodes.csv", "out-episodes.html", "out-figures", "out-tables",
    ]  # fmt: skip
    assert all(file.stat().st_size for file in files)


@pytest.mark.e2e
def test_in_a_folder_the_page_has_a_name_of_its_own(runs: list[ScoredRun], tmp_path: Path):
    assert [file.name for file in write_report(runs, tmp_path)][:4] == [
        "report.html", "report.md", "report.csv", "report-episodes.csv",
    ]  # fmt: skip


def test_the_page_needs_nothing_else_and_holds_every_section_and_figure(files: list[Path]):
    page = read_page(files[0])
    assert page.scripts == []
    sections = [a["id"] for tag, a in page.tags if tag == "section"]
    assert sections == [
        "leaderboard", "vigilance", "cutoff", "turns", "papers", "reading", "cost", "missing", "threats", "settings",
    ]  # fmt: skip
    figures = [a["aria-label"] for tag, a in page.tags if tag == "svg"]
    assert len(figures) == 3 + 4 + 1 + 2
    assert all(figures)
    assert {f"#{name}" for name in sections} <= set(page.attributes("href"))
    assert page.has("meta", name="viewport")


def test_figures_take_their_colours_from_the_page(files: list[Path]):
    drawn = re.findall(r"<svg.*?</svg>", files[0].read_text(encoding="utf-8"), re.DOTALL)
    assert all("var(--ink)" in svg for svg in drawn)
    assert not [found for svg in drawn for found in re.findall(r"(?:fill|stroke): #(?!fff)\w+", svg)]


@pytest.mark.e2e
def test_a_page_is_the_same_for_the_same_runs(files: list[Path], runs: list[ScoredRun], tmp_path: Path):
    again = write_report(runs, tmp_path / "out.html")
    first, second = (
        {str(file.relative_to(made[0].parent)): file.read_bytes() for file in made[0].parent.rglob("*.*")}
        for made in (files, again)
    )
    assert len(first) > 50
    assert first == second


def test_numbers_of_the_page_are_those_of_the_table(files: list[Path], runs: list[ScoredRun]):
    page = read_page(files[0])
    for row in summarise(runs[0].scores):
        for name in ("coverage", "Q/|C|", "hits"):
            mean, interval = format_estimate(row.estimates[name])
            assert mean in page.text
            assert interval in page.text
    assert "RateLimitError: try later" in page.text
    assert "≥ 6.0000" in page.text  # twelve episodes of ours at half a dollar, with replies of unknown price
    assert "14,400" in page.text


@pytest.mark.e2e
def test_what_logs_hold_can_neither_run_nor_break_the_page(tmp_path: Path):
    named = [score(f"t{i}", 1, 0, agent=HOSTILE, fake_level=level, steps=FAKES) for i in range(5) for level in (0, 4)]
    missing = (MissingEpisode(HOSTILE, "failed", HOSTILE),)
    other = score("t1", 1, 1, agent="\ud800 =1+1\n日本")
    run = run_of(*named, other, name=HOSTILE, missing=missing)
    page = read_page(write_report([run], tmp_path)[0])
    assert "alert(1)" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "&lt;b&gt;" in page.text


@pytest.mark.e2e
def test_a_place_that_cannot_be_written_is_told(runs: list[ScoredRun], tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OptionError, match="choose another place with --out"):
        write_report(runs, tmp_path / "file" / "out.html")


# Sections


@pytest.mark.e2e
def test_a_comparison_is_shown_when_two_runs_are_compared(runs: list[ScoredRun], tmp_path: Path):
    first, second = run_of(*(score(f"t{i}", 1, 0) for i in range(5))), run_of(*(score(f"t{i}", 1, 1) for i in range(5)))
    page = read_page(write_report([first, second], tmp_path, compare(first.scores, second.scores))[0])
    assert page.has("section", id="comparison")
    assert "0.500" in page.text


def test_without_fakes_the_figures_of_vigilance_say_how_to_get_them():
    section = vigilance(report_data([run_of(score("t1", 1, 1))]))
    assert section.charts == ()
    assert "--fake-level" in section.words[0]


def test_coverage_over_turns_is_a_mean_over_trees_that_keeps_the_last_value():
    slow = facts(score("t1", 1, 1), (0.0, 0.0, 0.5, 0.5, 0.5, 1.0))
    fast = facts(score("t2", 1, 1), (0.5, 1.0))
    twice = facts(score("t2", 1, 1, seed=1), (0.5, 1.0))
    report = report_data([ScoredRun(Path("r"), [slow, fast, twice], [], {})])
    (chart,) = turns(report).charts
    assert "turns per subtopic" in chart.caption
    curve = dict(coverage_curve(report.episodes))
    assert [curve[at].mean for at in (0, 0.5, 1, 1.5, 3)] == [0, 0.25, 0.5, 0.75, 1]
    assert curve[1].trees == 2


def test_the_heat_map_tells_the_evidence_tier_of_a_tree():
    known = replace(facts(score("t1", 1, 1)), tier="B")
    (first, *_) = papers(report_data([ScoredRun(Path("r"), [known, facts(score("t2", 1, 1))], [], {})])).tables
    assert [line[0].text for line in first.lines] == ["t1 (tier B)", "t2"]


def test_the_heat_map_has_a_line_per_tree_and_a_column_per_setting():
    scores = [score(f"t{i}", 1, i, agent=name) for i in (0, 1) for name in ("a", "b")]
    table = papers(report_data([run_of(*scores)])).tables[0]
    assert table.heads == ("tree", "b", "a") or table.heads == ("tree", "a", "b")
    assert [line[0].text for line in table.lines] == ["t0", "t1"]
    assert [line[1] for line in table.lines] == [shaded(0.5), shaded(1.0)]


def test_with_many_settings_the_heat_map_keeps_to_the_lowest_level():
    scores = [score("t1", 1, 0, agent=name, fake_level=level) for name in "ab" for level in range(1, 9)]
    assert papers(report_data([run_of(*scores)])).tables[0].heads == ("tree", "a", "b")
    few = papers(report_data([run_of(*scores[:8])])).tables[0]
    assert few.heads[:3] == ("tree", "a, f1", "a, f2")


def test_turn_limits_and_readings_are_named_where_a_report_has_several():
    report = report_data([run_of(score("t1", 1, 0), score("t1", 1, 0, max_turns=6))])
    assert list(report.names.values()) == ["made, default", "made, 3n"]
    report = report_data([run_of(score("t1", 1, 0), score("t1", 1, 0, threshold=0.7))])
    assert list(report.names.values()) == ["made, none τ=0.5", "made, none τ=0.7"]


def test_agents_stand_by_their_conclusion_and_those_without_one_last():
    given = {"unscored": (None, 0), "half": (1, 0), "nothing": (0, 0), "best": (1, 1)}
    scores = [score("t1", *grades, agent=agent) for agent, grades in given.items()]
    assert [row.agent for row in report_data([run_of(*scores)]).base] == ["best", "half", "nothing", "unscored"]


# Tables


def test_cells_of_every_kind():
    assert cell(None).text == ABSENT
    assert cell(1234).text == "1,234"
    assert (cell(0.25).text, cell(12.34).text, cell(-0.00001).text) == ("0.250", "12.3", "0.000")
    assert cell(Estimate(0.5, -0.001, 0.75, 5, 9)) == TableCell("0.500", "[0.00, 0.75]", None)
    assert cell(Estimate(None, None, None, 0, 0)).text == ABSENT


def test_a_mean_tells_its_trees_where_they_are_not_those_of_the_row():
    interval, plain = Estimate(0.5, 0.25, 0.75, 5, 9), Estimate(0.5, None, None, 2, 3)
    assert [counted(each, 5).below for each in (interval, plain)] == ["[0.25, 0.75]", "n = 2"]
    assert [counted(each).below for each in (interval, plain)] == ["[0.25, 0.75] n = 5", "n = 2"]
    assert counted(Estimate(None, None, None, 0, 0), 5) == counted(None) == TableCell(ABSENT)


def test_a_rate_of_fewer_trees_than_its_row_says_so():
    run = run_of(score("t1", 1, 0, steps=FAKES, fake_level=3), score("t2", 1, 0, fake_level=3))
    found, _ = vigilance(report_data([run])).tables
    (line,) = found.lines
    assert line[found.heads.index("n (trees)")].text == "2 (2)"
    assert line[found.heads.index("hits")].below == "n = 1"
    assert line[found.heads.index("redo")].below == ""


@pytest.mark.parametrize(
    ("value", "step"), [(0.0, 0), (0.04, 0), (0.26, 3), (1.0, 10), (1.2, 10), (-0.1, 0), (None, None)]
)
def test_shades_of_the_heat_map(value: float | None, step: int | None):
    assert shaded(value).shade == step


def test_markdown_shows_what_logs_hold_as_it_stands():
    table = markdown(make_table("c", ["agent", "Q/|C|"], [["a|b\n# *x* [y](z) <i>", 0.5]]))
    assert table.splitlines()[-1] == r"| a\|b \# \*x\* \[y\](z) \<i\> | 0.500 |"
    assert len({line.count("|") - line.count("\\|") for line in table.splitlines()}) == 1
    assert escaped("`a_b`") == r"\`a\_b\`"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_no_text_in_csv_is_a_formula(text: str):
    ((_, line),) = [list(csv.reader(io.StringIO(as_csv(["a", "b", "c"], [[text, -0.5, None]]))))]
    assert line == [f"'{text}", "-0.5", ""]


def test_a_table_as_csv_has_unrounded_numbers_with_their_intervals():
    whole, few = Estimate(1 / 3, 0.25, 0.75, 5, 9), Estimate(0.5, None, None, 2, 3)
    table = make_table("c", ["agent", "Q", "n"], [["a", whole, 1234], ["=b", few, None], ["c", None, 1 / 3]])
    found = list(csv.reader(io.StringIO(table_csv(table))))
    assert found == [
        ["agent", "Q", "Q, low", "Q, high", "Q, trees", "n"],
        ["a", str(1 / 3), "0.25", "0.75", "5", "1234"],
        ["'=b", "0.5", "", "", "2", ""],
        ["c", "", "", "", "", str(1 / 3)],
    ]


def test_a_table_as_latex_has_the_rules_of_booktabs_and_a_line_for_intervals():
    whole = Estimate(-1 / 3, -0.75, 0.25, 5, 9)
    lines = latex(make_table("Means − all", ["agent", "Q/|C|"], [["a_b", whole], ["[c]", None]]), "means").splitlines()
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\begin{tabular}{lr}" in lines
    assert r"\caption{Means $-$ all}" in lines
    assert r"\label{tab:means}" in lines
    at = lines.index(r"a\_b & $-$0.333 \\")
    assert lines[at + 1 : at + 3] == [r" & {\scriptsize [$-$0.75, 0.25]} \\", r"{[c]} & -- \\"]
    assert r"agent & Q/\textbar{}C\textbar{} \\" in lines


@pytest.mark.parametrize(
    "text", [HOSTILE, r"\input{/etc/passwd}", "$x^2_{1}$ & 50% #1 ~ `a\\\\", "a\n\n\\end{table}%", "\ud800\x00--"]
)
def test_no_text_is_a_command_of_latex(text: str):
    found = tex(text)
    known = "|".join(re.escape(each) for each in sorted((*_MARKS.values(), r"\textbackslash{}"), key=len, reverse=True))
    rest = re.sub(known, "", found)
    assert not re.search(r"[\\{}$&#_%~^<>|\n]", rest), "nothing but escapes of single characters is left"
    table = latex(make_table(text, ["agent"], [[text]]), "t")
    assert table.count(r"\end{table}") == 1
    assert len(table.splitlines()) == len(latex(make_table("c", ["agent"], [["a"]]), "t").splitlines())


def test_every_figure_and_table_has_its_files_and_the_page_leads_to_them(files: list[Path]):
    page, folder = read_page(files[0]), files[0].parent
    places = {link for link in page.attributes("href") if not link.startswith("#")}
    assert all((folder / link.partition("#")[0]).is_file() for link in places)
    for name, suffixes in (("figures", ("svg", "pdf", "png")), ("tables", ("csv", "md", "tex"))):
        made = sorted(file.name for file in (folder / f"out-{name}").iterdir())
        stems = {file.rsplit(".")[0] for file in made}
        assert made == sorted(f"{stem}.{suffix}" for stem in stems for suffix in suffixes)
        assert {f"out-{name}/{file}" for file in made} <= places
        assert len(stems) >= 10
    shown = ElementTree.parse(folder / "out-figures" / "hits.svg").getroot()
    assert shown.tag.endswith("svg")
    board = (folder / "out-tables" / "leaderboard.md").read_text(encoding="utf-8")
    assert "random-menu" in board


def test_the_cost_has_retries_refusals_and_tokens(tmp_path: Path):
    run = run_of(score("t1", 1, 1), retries=3, refused=2, prompt_tokens=5, completion_tokens=7)
    write_report([run], tmp_path)
    (line,) = csv.DictReader((tmp_path / "report-tables" / "cost.csv").read_text(encoding="utf-8").splitlines())
    wanted = {"retries": "3", "refusals": "2", "prompt tokens": "5", "completion tokens": "7"}
    assert wanted.items() <= line.items()


def test_a_number_leads_to_its_episodes(files: list[Path]):
    links = {unquote_plus(link) for link in read_page(files[0]).attributes("href")}
    for wanted in ("agent=ours&fakes=3", "tree=t4&agent=random-menu&fakes=0", "agent=ours"):
        assert f"out-episodes.html#{wanted}" in links
    listed = read_page(files[0].with_name("out-episodes.html"))
    assert listed.text.count("random-menu") == 6
    assert "18 episodes" in listed.text


def test_two_configurations_of_one_agent_are_listed_apart(tmp_path: Path):
    scores = [replace(score("t1", 1, 1, seed=seed), config={"name": "made", "warmth": seed}) for seed in (0, 1)]
    write_report([run_of(*scores)], tmp_path)
    listed = read_page(tmp_path / "report-episodes.html").text
    assert "made (warmth=0)" in listed
    assert "made (warmth=1)" in listed


def test_csv_holds_every_mean_and_every_episode(files: list[Path], runs: list[ScoredRun]):
    means = list(csv.DictReader(files[2].read_text(encoding="utf-8").splitlines()))
    table = {(row.agent, row.fake_level): row for row in summarise(runs[0].scores)}
    assert len(means) == sum(len(row.estimates) for row in table.values())
    for line in means:
        estimate = table[line["agent"], int(line["fake_level"])].estimates[line["measure"]]
        assert line["mean"] == ("" if estimate.mean is None else str(estimate.mean))
    episodes = list(csv.DictReader(files[3].read_text(encoding="utf-8").splitlines()))
    assert len(episodes) == 18
    assert {line["dollars"] for line in episodes} == {"0.5"}
    assert {line["completion_tokens"] for line in episodes} == {""}
    assert episodes[0]["Q/|C|"] == str(runs[0].scores[0].quality_share)
