"""No trick is above bayes, a bandit finds the best arm, and the observer gets what it expects."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from inquitree_gym.inquiry.courses import play_courses
from inquitree_gym.inquiry.observer import design_of, observe
from inquitree_gym.trees import Tree, load_tree
from research import observed
from research.ceiling import BANDIT, BAYES, TwoAgree, bandit, compared, one_subtopic, returns, stop_early, two_axes


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper2")


@pytest.mark.parametrize(("level", "turns"), [(0, 3), (3, 5)])
def test_no_trick_is_above_bayes(level: int, turns: int, tree: Tree):
    found = {tree.id: returns(design_of(tree), level, turns * len(tree.subtopics), 150)}
    assert len(found[tree.id]) == 16
    for name in found[tree.id]:
        mean, gap, above = compared(found, name)
        assert above == 0, name
        assert (gap.mean == 0) if name == BAYES else (mean.mean < 1 or level == 0)
    assert compared(found, BANDIT)[1].mean < 0


def test_a_bandit_learns_the_best_arm():
    rewards = np.random.default_rng(0).choice([-1.0, 1.0], size=(3, 4000), p=[0.5, 0.5])
    rewards[1] = np.random.default_rng(1).choice([-1.0, 1.0], size=4000, p=[0.1, 0.9])
    assert bandit(rewards)[-1000:].mean() > 0.7
    assert bandit(rewards)[:3].tolist() == [rewards[arm, arm] for arm in range(3)], "every arm once"


def test_tricks_do_as_they_say(tree: Tree):
    design = design_of(tree)
    model, homes = observe(design, 3), np.array(design.homes)

    def runs(chooser, limit: int = 40):
        return play_courses(design, 3, limit, chooser, model=model, episodes=60, seed=2)

    agreed = runs(TwoAgree(), 200)
    ends = [
        shown[study == each].tolist()
        for study, shown in zip(agreed.study, agreed.shown, strict=True)
        for each in set(study.tolist()) - {-1}
    ]
    assert np.mean([own[-1] in own[:-1] for own in ends]) > 0.95, "all but those of outcomes that were ruled out"
    only = runs(one_subtopic)
    assert all(len(set(homes[row[row >= 0]])) == 1 for row in only.study)
    assert (runs(stop_early).study >= 0).sum(1).max() < (agreed.study >= 0).sum(1).max()
    wide = [len(axes) > 1 for axes in design.reads]
    assert any(wide[study] for study in runs(two_axes).study[:, :3].ravel() if study >= 0)


@pytest.mark.parametrize("level", [0, 4, 10])
def test_the_observer_gets_what_it_expects(level: int, tree: Tree):
    hoped, got = observed.expected_and_realised(tree, level, 3, 4000)
    error = (got - hoped).std() / len(got) ** 0.5
    assert abs((got - hoped).mean()) <= max(3.3 * error, 1e-9)


@pytest.mark.parametrize(("verb", "lines"), [("expected", 13), ("cover", 4), ("repeats", 3)])
def test_each_figure_has_a_command(verb: str, lines: int):
    done = CliRunner().invoke(observed.app, [verb, "--papers", "12", "--episodes", "20"])
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == lines
