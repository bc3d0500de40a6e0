"""The paper's experiments: their shapes, and their figures by the paper's definitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inquitree_gym.inquiry.paper.studies import (
    PRINTED_CUTOFFS,
    SHAPES,
    TEN_PAPERS,
    departures,
    level_figures,
    paper_study,
    printed_models,
    splits,
)
from inquitree_gym.results.cutoff import load_models
from inquitree_gym.runner.check import read_study
from inquitree_gym.trees import builtin_ids, load_tree
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, redo, result
from tests.results.test_aggregate import WHOLE, score

STUDIES = Path(__file__).parents[2] / "studies" / "paper"
REDOING = [enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s2"), result("s2a", 2), CONCLUDE, END]
"""Three results, two of them fakes, one of which is redone."""
REDOING_ONCE = [enter("s1"), result("s1a"), redo("s1a"), EXPLORE, enter("s2"), result("s2a"), CONCLUDE, END]
"""Three true results, one of which is redone."""


@pytest.mark.parametrize("name", SHAPES)
def test_the_files_of_the_studies_have_the_shape_of_the_commands(name: str):
    study = read_study(STUDIES / f"{name}.toml")
    assert study == paper_study(name, agents=study.agents)
    assert departures(study, name) == []
    assert {file.stem for file in STUDIES.iterdir()} == set(SHAPES)


def test_the_ten_papers_are_the_first_with_good_evidence():
    numbers = sorted(int(name.removeprefix("paper")) for name in builtin_ids())
    good = [f"paper{n}" for n in numbers if load_tree(f"paper{n}").provenance.tier in ("A", "B")]
    assert tuple(good[:10]) == TEN_PAPERS


def test_departures_from_the_paper_are_named():
    study = paper_study("fig3", agents=("random",), trees=("2", "17"), seeds=1)
    assert departures(study, "fig3") == ["papers: 2 in the place of 10", "runs: 1 in the place of 3"]
    other = paper_study("fig3", agents=("random",), fake_level=(0, 2, 4, 6))
    assert departures(other, "fig3") == ["other fake levels"]


def test_the_change_of_the_redo_frequency_is_relative_to_the_same_agent_at_level_0():
    scores = [
        score("t1", 1, 1, agent="a", steps=REDOING_ONCE), score("t1", 1, 1, agent="a", fake_level=6, steps=REDOING),
        score("t2", 1, 1, agent="a", fake_level=6, steps=REDOING), score("t1", 1, 1, agent="b", steps=WHOLE),
        score("t1", 1, 1, agent="b", fake_level=6, steps=REDOING), score("t1", 1, 1, agent="c", fake_level=3),
    ]  # fmt: skip
    found = {(each.player.agent, each.level): each for each in level_figures(scores)}
    assert list(found) == [("a", 0), ("a", 6), ("b", 0), ("b", 6), ("c", 3)]
    assert found["a", 0].counts.redo_rate == pytest.approx(1 / 3)
    assert found["a", 6].counts.results == 6, "the showings of both trees are pooled"
    assert found["a", 6].change == pytest.approx(0)
    assert found["a", 6].counts.hit_rate == pytest.approx(0.5)
    assert found["b", 6].change is None, "undefined where nothing was redone at level 0"
    assert found["c", 3].change is None, "undefined where level 0 was not played"


def test_a_change_is_in_percent_of_level_0():
    twice = [
        enter("s1"), result("s1a", 1), redo("s1a"), redo("s1a"), EXPLORE, enter("s2"), result("s2a"), CONCLUDE, END,
    ]  # fmt: skip
    scores = [score("t1", 1, 1, steps=REDOING_ONCE), score("t1", 1, 1, fake_level=9, steps=twice)]
    assert level_figures(scores)[1].change == pytest.approx(100 * (2 / 4 - 1 / 3) / (1 / 3))


def test_the_printed_cutoffs_stand_beside_those_found_since():
    printed = {model.name: model for model in printed_models()}
    since = {model.name: model for model in load_models()}
    assert {name: model.cutoff.date for name, model in printed.items()} == PRINTED_CUTOFFS
    assert (printed["Claude Sonnet 4.5"].latest, since["Claude Sonnet 4.5"].latest is None) == (None, False)
    assert printed["o3"].fits("openai/o3")


def test_players_without_a_model_are_controls_at_every_cutoff_and_unknown_models_are_left_out():
    def asking(model: str | None, tree: str = "t1"):
        return replace(score(tree, 1, 1, agent=f"llm {model}"), model=model)

    found = splits([asking(None), asking("openai/o3"), asking("openai/my-own")], printed_models())
    assert [each.control for each in found] == [True] * 5 + [False]
    assert [each.cutoff for each in found][-1] == PRINTED_CUTOFFS["o3"]
    assert found[0].before["coverage"].trees + found[0].after["coverage"].trees + found[0].unclear == 1
