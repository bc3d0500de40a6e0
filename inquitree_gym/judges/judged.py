"""`judge`: the verdicts on one conclusion, by any judge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from statistics import fmean

from inquitree_gym.judges.quality import Verdict
from inquitree_gym.judges.records import version_of
from inquitree_gym.judges.registry import LOCAL, AsyncJudge, JudgeOptions, load_judge
from inquitree_gym.llm import run_sync
from inquitree_gym.trees import Tree, load_tree


@dataclass(frozen=True, slots=True)
class JudgedConclusion:
    """The verdicts on one conclusion."""

    tree: str
    """Id of the tree."""
    judge: str
    """Name of the judge."""
    version: int
    """Version of the judge."""
    verdicts: dict[str, Verdict]
    """Score S and reason by id of the conclusion item, in tree order."""

    @property
    def mean(self) -> float | None:
        """Mean S over the items, in [0, 1]; None if an item is unscored."""
        scores = [verdict.score for verdict in self.verdicts.values() if verdict.score is not None]
        return fmean(scores) if len(scores) == len(self.verdicts) else None


def judge(
    tree: str | os.PathLike[str] | Tree,
    conclusion: str,
    judge: str | AsyncJudge = LOCAL,
    *,
    options: JudgeOptions | None = None,
) -> JudgedConclusion:
    """Judge a conclusion about a tree, whatever was seen of its results.

    Args:
        tree: an id, a path, or a `Tree`.
        conclusion: free text, such as a numbered list.
        judge: ``"local"``, ``"nli:MODEL"``, ``"llm:MODEL"``, ``"llm-paper:MODEL"``, or an `AsyncJudge`.
        options: of a named judge that asks a chat model.

    Raises:
        TreeError: the tree is unknown or invalid.
        OptionError: the judge is unknown.
        JudgeError: the judge cannot be loaded.
        ServiceError: the judge's service rejects every request.
        MissingExtraError: the judge asks a chat model, and litellm is not installed.
    """
    found, by = load_tree(tree), load_judge(judge, options)
    verdicts = run_sync(by.judge(found, conclusion)).verdicts
    named = {item.id: verdict for item, verdict in zip(found.conclusions, verdicts, strict=True)}
    return JudgedConclusion(found.id, by.name, version_of(by.config), named)
