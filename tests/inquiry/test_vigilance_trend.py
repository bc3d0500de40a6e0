"""Whether vigilance wears off: parts and slopes of made episodes, and the section of a report that shows them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from inquitree_gym.inquiry.results import CHANGE, LEVEL, EpisodeScore
from inquitree_gym.inquiry.sections import vigilance, vigilance_over_time, vigilance_trend
from inquitree_gym.inquiry.vigilance import CRITERION, D_PRIME, FALSE_ALARMS, GAP, HITS, Counts, Exposure
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.pages import write_report
from inquitree_gym.results.report import build_report
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import summarise
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, redo, result
from tests.results.html import read_page
from tests.results.test_aggregate import score

TURNS = 8
STEPS = [enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s2"), result("s2a", 2), EXPLORE, CONCLUDE, END]
"""L is `TURNS`."""


def shown(turn: int, fake: int = 0, redone: bool | None = False, before: int = 0, **more) -> Exposure:
    return Exposure("s1a", fake, turn, before, **{"tokens_read": 500, "prompt_tokens": None, "redone": redone, **more})


def played(*found: Exposure, tree: str = "t1", level: int = 3, **changes) -> EpisodeScore:
    made = score(tree, 1, 0, **{"steps": STEPS, "fake_level": level, **changes})
    return replace(made, detail=replace(made.detail, exposures=found, reasoned=None))


FADING = (shown(1, 1, True), shown(3, 2, True), shown(5, 0, True), shown(6, 1, False), shown(8, 0, False))


def test_results_are_put_into_quarters_by_their_turn():
    parts = vigilance_trend([played(*FADING)]).by_position
    assert [(part.name, part.middle, part.counts) for part in parts] == [
        ("0.00–0.25", 0.125, Counts(1, 1, 0, 0)),
        ("0.25–0.50", 0.375, Counts(1, 1, 0, 0)),
        ("0.50–0.75", 0.625, Counts(0, 0, 1, 1)),
        ("0.75–1.00", 0.875, Counts(1, 0, 1, 0)),
    ]
    assert parts[3].estimates[HITS] == Estimate(0.0, None, None, 1, 1, (0.0,))
    assert parts[0].estimates[GAP].mean is None


def test_first_and_later_showings_stand_apart_and_only_first_ones_can_wear_off():
    later = (shown(2, 1, True, before=1, tellable=True), shown(7, 0, True, before=2, truth_seen=True))
    found = vigilance_trend([played(*FADING, *later)])
    assert [(part.name, part.counts) for part in found.by_showing] == [
        ("all", Counts(4, 3, 3, 2)), ("first", Counts(3, 2, 2, 1)), ("later", Counts(1, 1, 1, 1)),
        ("detectable", Counts(1, 1, 2, 1)), ("true result seen", Counts(0, 0, 1, 1)),
    ]  # fmt: skip
    assert sum(part.counts.fakes + part.counts.trues for part in found.by_position) == 5
    assert found.over_position == vigilance_trend([played(*FADING)]).over_position


@pytest.mark.parametrize("episodes", [[], [played(level=3)], [played(*FADING, level=0)], [played(shown(1, 1, None))]])
def test_without_a_choice_about_a_result_under_fakes_there_is_nothing_to_wear_off(episodes: list[EpisodeScore]):
    assert vigilance_trend(episodes) is None


def test_context_is_what_the_service_counted_where_it_counted_everywhere():
    counted = [
        shown(1, 1, True, prompt_tokens=1_500, tokens_read=10),
        shown(2, 0, False, prompt_tokens=70_000, tokens_read=20),
    ]
    found = vigilance_trend([played(*counted)])
    assert found.counted
    assert [(part.name, part.counts.fakes) for part in found.by_context] == [("1–2", 1), ("from 64", 0)]
    found = vigilance_trend([played(*counted, shown(3, 1, True, tokens_read=8_000))])
    assert not found.counted
    assert [(part.name, part.counts.fakes) for part in found.by_context] == [("0–1", 1), ("8–16", 1)]


def test_slopes_over_the_inquiry_and_over_context():
    along = [
        shown(turn, 1, redone, tokens_read=1_000 * turn)
        for turn, redone in ((2, True), (4, True), (6, False), (8, False))
    ]
    found = vigilance_trend([played(*along)])
    # Least squares through (2, 1), (4, 1), (6, 0), (8, 0), in eighths of the inquiry and in thousands of tokens.
    assert found.over_position[HITS].mean == pytest.approx(-0.2 * TURNS)
    assert found.over_context[HITS].mean == pytest.approx(-0.2)
    assert found.over_position[FALSE_ALARMS].mean is None


def test_a_row_has_sensitivity_from_the_pooled_episodes_of_each_tree():
    scores = [score("t1", 1, 0, steps=STEPS, fake_level=5, seed=seed) for seed in range(3)]
    scores += [score("t2", 1, 0, fake_level=5)]
    (row,) = summarise(scores)
    pooled = Counts(6, 3, 3, 0)  # per episode a hit, a miss and a right silence
    assert row.estimates[D_PRIME] == Estimate(pooled.d_prime, None, None, 1, 1, (pooled.d_prime,))
    assert row.estimates[CRITERION].mean == pytest.approx(pooled.criterion)


def test_the_change_of_redo_is_paired_with_level_0_of_the_same_agent_and_limit():
    scores = [
        score("t1", 1, 0, seed=0), score("t1", 1, 0, seed=1), score("t1", 1, 0, seed=0, agent="other"),
        score("t1", 1, 0, steps=STEPS, fake_level=4, seed=1), score("t1", 1, 0, steps=STEPS, fake_level=4, seed=2),
        score("t1", 1, 0, steps=STEPS, fake_level=4, seed=0, max_turns=9),
    ]  # fmt: skip
    changes = {(row.agent, row.cell[LEVEL], row.limit): row.estimates[CHANGE] for row in summarise(scores)}
    assert changes["made", 4, "3n"] == Estimate(pytest.approx(1 / 3), None, None, 1, 1, (pytest.approx(1 / 3),))
    assert changes["made", 0, "3n"].mean is None, "level 0 is no change from itself"
    assert changes["made", 4, "9"].mean is None, "no level 0 at that limit"


@pytest.fixture(scope="module")
def run() -> ScoredRun:
    fakes = [played(*FADING, tree=f"t{i}", agent="=fading") for i in range(6)]
    plain = [score(f"t{i}", 1, 0, agent="=fading") for i in range(6)]
    return ScoredRun(Path("run"), (*plain, *fakes))


def test_the_sections_show_levels_and_showings_position_context_and_slopes(run: ScoredRun):
    section, worn = vigilance(build_report([run])), vigilance_over_time(build_report([run]))
    assert [chart.name for chart in section.charts] == ["redo-rate", "hit-rate", "false-alarm-rate", "d-prime"]
    assert [(each.caption, len(each.lines)) for each in section.tables] == [
        ("Vigilance", 2), ("Redo probabilities", 2), ("Vigilance by kind of showing", 2),
        ("Conflicts between results", 2), ("Vigilance against the posterior", 2),
    ]  # fmt: skip
    assert [chart.name for chart in worn.charts] == ["position"]
    assert [(each.caption, len(each.lines)) for each in worn.tables] == [
        ("By kind of showing", 3),
        ("By position in the inquiry", 4),
        ("By context, thousands of tokens", 1),
        ("Change from beginning to end, and per 1,000 tokens", 2),
    ]
    few = vigilance_over_time(build_report([replace(run, scores=run.scores[:2] + run.scores[-2:])]))
    assert few.charts == (), "no line through means of two trees"
    assert "so no line is drawn" in " ".join(few.words)
    assert section.tables[0].heads[-2:] == (D_PRIME, CRITERION)
    level_3 = [cell.text for cell in section.tables[0].lines[1]]
    assert level_3[4] == "0.333"
    assert [cell.text for cell in worn.tables[0].lines[1]][:5] == ["=fading", "first", "18", "12", "0.667"]


def test_stated_beliefs_have_a_table_of_their_own(run: ScoredRun):
    steps = [*STEPS[:3], {**EXPLORE, "belief": 0.25}, *STEPS[4:]]
    stating = played(tree="t1", steps=steps, agent="stating")
    section = vigilance(build_report([replace(run, scores=(*run.scores, stating))]))
    assert section.tables[5].caption == "Stated beliefs"
    assert [cell.text for cell in section.tables[5].lines[-1]] == ["stating", "3", "1 (1)", "1", "0.062", "–"]
    assert [cell.text for cell in section.tables[5].lines[0]] == ["=fading", "0", "6 (6)", "0", "–", "–"]


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn")
def test_the_page_draws_them_and_the_csv_holds_them(run: ScoredRun, tmp_path: Path):
    page, *others = write_report([run], tmp_path / "r.html")
    assert len([a for tag, a in read_page(page).tags if tag == "svg"]) == 4 + 4 + 1 + 2 + 2
    (table,) = (file for file in others if file.name == "r-vigilance.csv")
    lines = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert {line["agent"] for line in lines} == {"'=fading"}, "no formula for a spreadsheet"
    found = {(line["by"], line["part"], line["measure"]): line for line in lines}
    first = found["showing", "first", HITS]
    assert (float(first["mean"]), first["trees"], first["fakes"], first["trues"]) == (
        pytest.approx(2 / 3), "6", "18", "12",
    )  # fmt: skip
    assert float(found["position", "slope", HITS]["mean"]) < 0
    assert found["context estimated", "slope", HITS]["mean"] == "", "all stood at one context"
