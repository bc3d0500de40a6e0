"""`inquitree_gym.judge`: one call for any judge, any tree and any conclusion."""

from __future__ import annotations

from typing import Any

import pytest

from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.inquiry.judging import judge
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.trees import Tree, load_tree


class Coin:
    """Judge of one's own: full marks if the conclusion is long enough, and no verdict on the first item."""

    name = "coin"
    config: dict[str, Any] = {"version": 7, "length": 10}  # noqa: RUF012

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        score = 1.0 if len(conclusion) >= 10 else 0.0
        return Judgement((Verdict(None, "lost"), *(Verdict(score, "by length") for _ in tree.conclusions[1:])))


def test_a_judge_of_ones_own():
    found = judge("paper8", "long enough, surely", Coin())
    assert (found.judge, found.version, found.mean) == ("coin", 7, None)
    assert {verdict.score for verdict in found.verdicts.values()} == {None, 1.0}
    assert list(found.verdicts) == [item.id for item in load_tree("paper8").conclusions]
    other = judge("paper28", "long enough, surely", Coin(), world="11111")
    assert (other.tree, len(other.verdicts)) == ("paper28", 9)


def test_what_is_no_judge_or_no_tree_is_told():
    with pytest.raises(OptionError, match=r"no judge is called 'llm'.*known: nli:MODEL, llm:MODEL, llm-paper:"):
        judge("paper8", "text", "llm")
    with pytest.raises(OptionError, match="have the members of AsyncJudge, got 3"):
        judge("paper8", "text", 3)  # type: ignore[arg-type]
    with pytest.raises(TreeError):
        judge("paper999", "text", Coin())
