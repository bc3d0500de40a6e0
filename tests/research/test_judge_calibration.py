"""Judges on conclusions of known worth."""

from __future__ import annotations

import asyncio

import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.judges.local import local_judge
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.llm import Usage
from inquitree_gym.trees import Tree, load_tree
from research.datasets import CONCLUSION_KINDS, ConclusionSet, load_conclusions
from research.judge.conclusions import load_played
from research.judge.crossval import Evidence, inputs_digest, read_evidence, verdict_name
from research.judge_calibration import JudgedSet, calibrate

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def sets() -> list[ConclusionSet]:
    return load_conclusions()


# The set


def test_a_set_that_is_not_whole_is_refused(sets: list[ConclusionSet]):
    tree = load_tree(sets[0].tree)
    short = sets[0].model_copy(update={"conclusions": sets[0].conclusions[1:]})
    with pytest.raises(OptionError, match=f"{tree.id} are not one of each kind"):
        short.expected(tree)
    with pytest.raises(OptionError, match="with a score for every conclusion item"):
        sets[0].expected(load_tree("paper12"))


# The local judge on trees that its adapter has not seen


@pytest.fixture(scope="module")
def evidence(sets: list[ConclusionSet]) -> Evidence:
    return read_evidence(inputs_digest(load_played(), sets))


def test_the_evidence_belongs_to_the_conclusions(sets: list[ConclusionSet], evidence: Evidence):
    assert len(evidence.items) == sum(len(each.items) for one in load_played() for each in one.conclusions) == 500
    with pytest.raises(OptionError, match="made from other conclusions"):
        read_evidence(inputs_digest(load_played(), sets[:1]))


def test_a_verdict_is_named_as_a_labeller_names_it():
    tree = load_tree("paper12")
    item = tree.conclusions[0]
    judge = local_judge(tree)
    named = {text: verdict_name(judge.judge(text)[0]) for text in (item.text, item.false_variants[0], "Bread rises.")}
    assert list(named.values()) == ["full", "wrong", "nothing"]


# What is made of scores


def of(**scores: tuple[float | None, ...]) -> JudgedSet:
    fair = {"perfect": (1.0, 1.0), "partial": (1.0, 0.0), "padded": (1.0, 1.0)}
    return JudgedSet("t", {kind: scores.get(kind, fair.get(kind, (0.0, 0.0))) for kind in CONCLUSION_KINDS},
                  {kind: fair.get(kind, (0.0, 0.0)) for kind in CONCLUSION_KINDS})  # fmt: skip


def test_the_order_needs_every_part():
    assert of().holds
    assert of().error == 0
    for kind, scores in (
        ("partial", (1.0, 1.0)), ("contradicting", (1.0, 0.0)), ("injected", (0.0, 0.6)), ("perfect", (0.6, 1.0)),
    ):  # fmt: skip
        assert not of(**{kind: scores}).holds


def test_what_is_unscored_is_left_out_and_counted_and_the_order_is_then_not_known():
    found = of(padded=(1.0, None), hedged=(None, None), partial=(0.6, 0.0))
    assert (found.means["padded"], found.means["hedged"], found.unscored) == (1.0, None, 3)
    assert found.error == pytest.approx(0.4 / 11)
    assert not found.holds


class Fair:
    """Gives what is expected, but knows nothing of one tree."""

    name = "fair"

    def __init__(self, sets: list[ConclusionSet], silent: str = "") -> None:
        self._known = {
            (each.tree, conclusion.text): each.expected(load_tree(each.tree))[conclusion.kind]
            for each in sets
            for conclusion in each.conclusions
        }
        self.config: dict[str, object] = {}
        self._silent = silent
        self.running = self.most = 0

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        scores = self._known[tree.id, conclusion]
        return Judgement(
            tuple(Verdict(None if tree.id == self._silent else score, "") for score in scores), Usage(replies=1)
        )


def test_calibration_compares_with_what_is_expected(sets: list[ConclusionSet]):
    told: list[str] = []
    judge = Fair(sets, silent="paper8")
    found = asyncio.run(calibrate(sets[:7], judge, 3, told.append))
    assert judge.most == 3
    assert found.usage == Usage(replies=7 * len(CONCLUSION_KINDS))
    assert len(told) == 7 * len(CONCLUSION_KINDS)
    assert "paper8 perfect" in told
    assert [each.holds for each in found.judged] == [each.tree != "paper8" for each in sets[:7]]
    agreed = found.with_expected
    assert (agreed.kappa, agreed.low, agreed.same, agreed.trees) == (1, 1, 1, 6)
    assert agreed.unscored == 6 * len(load_tree("paper8").conclusions), "the empty conclusion does not count"
