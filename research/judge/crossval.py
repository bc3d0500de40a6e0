"""Cross-validation of the local judge: adapters that have not seen a tree judge the conclusions about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.judges.local import LocalJudge
from inquitree_gym.inquiry.judges.quality import FULL, PARTIAL, Verdict
from inquitree_gym.trees import Tree, load_tree
from research.datasets import ConclusionSet
from research.judge.conclusions import LabelledConclusion, LabelledVerdict, PlayedConclusions
from research.judge.gaming import embed_claims, gaming_table

EVIDENCE = Path(__file__).parent / "evidence.json"
FOLDS = 3
"""Parts of the trees, each left out in turn."""
NOT_CLAIMED = "not claimed"

JudgeOf = Callable[[Tree], LocalJudge]


class JudgedItem(NamedTuple):
    """One conclusion item of one played conclusion, as labelled and as judged."""

    tree: str
    author: str
    style: str
    label: LabelledVerdict
    verdict: LabelledVerdict
    sure: bool
    """False if the labeller had a doubt about this item."""


class Sense(NamedTuple):
    """Sense that the judge gives a written claim about the item that it was written for."""

    tree: str
    right: bool
    sense: float


class Evidence(NamedTuple):
    """Results of a judge, or of judges that have not seen the trees that they judge."""

    items: list[JudgedItem]
    senses: list[Sense]
    gaming: dict[tuple[str, str], float]
    """Mean S by kind and name of a strategy."""


def evaluate(
    played: Sequence[PlayedConclusions],
    written: Sequence[ConclusionSet],
    judge_of: JudgeOf,
    report: Callable[[str], None],
) -> Evidence:
    """Judge played conclusions, written claims and the strategies of `gaming_table`."""
    items: list[JudgedItem] = []
    senses: list[Sense] = []
    for each in played:
        report(each.tree)
        tree = load_tree(each.tree)
        judge = judge_of(tree)
        embed_claims(judge, (conclusion.text for conclusion in each.conclusions))
        items += [row for conclusion in each.conclusions for row in _judged(tree, judge, conclusion)]
    for labelled in written:
        senses += _senses(labelled, judge_of(load_tree(labelled.tree)))
    trees = [load_tree(each.tree) for each in played]
    return Evidence(items, senses, gaming_table(trees, judge_of, report))


def verdict_name(verdict: Verdict) -> LabelledVerdict:
    """Return a verdict of the local judge as a labeller would call it."""
    if verdict.score == FULL:
        return "full"
    if verdict.score == PARTIAL:
        return "part"
    return "nothing" if verdict.why == NOT_CLAIMED else "wrong"


def write_evidence(file: Path, evidence: Evidence, inputs: str, settings: Any) -> None:
    """Write the evidence with the settings of the training and a digest of what was judged."""
    content = {
        "settings": asdict(settings),
        "inputs": inputs,
        "items": evidence.items,
        "senses": [(each.tree, each.right, round(each.sense, 3)) for each in evidence.senses],
        "gaming": [(*name, round(value, 4)) for name, value in evidence.gaming.items()],
    }
    file.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_evidence(inputs: str, file: Path = EVIDENCE) -> Evidence:
    """Return the evidence of the cross-validation.

    Raises:
        OptionError: it was made from other conclusions.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["inputs"] != inputs:
        raise OptionError(f"'{file}' was made from other conclusions; run: python -m research.judge crossvalidate")
    return Evidence(
        [JudgedItem(*each) for each in content["items"]],
        [Sense(*each) for each in content["senses"]],
        {(kind, name): value for kind, name, value in content["gaming"]},
    )


def inputs_digest(played: Iterable[PlayedConclusions], written: Iterable[ConclusionSet]) -> str:
    """Return a digest of the conclusions, with their labels."""
    texts = [each.model_dump_json() for sets in (played, written) for each in sets]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def tree_folds(trees: Sequence[str]) -> list[list[str]]:
    """Return the parts of the trees that are left out in turn."""
    return [list(trees[start::FOLDS]) for start in range(FOLDS)]


def _judged(tree: Tree, judge: LocalJudge, labelled: LabelledConclusion) -> Iterable[JudgedItem]:
    for item, verdict in zip(tree.conclusions, judge.judge(labelled.text), strict=True):
        sure = item.id not in labelled.doubt
        label = labelled.items[item.id]
        yield JudgedItem(tree.id, labelled.author, labelled.style, label, verdict_name(verdict), sure)


def _senses(labelled: ConclusionSet, judge: LocalJudge) -> Iterable[Sense]:
    """Yield the sense of each line of the perfect and the contradicting conclusion: line k was written for item k."""
    for conclusion in labelled.conclusions:
        if conclusion.kind in ("perfect", "contradicting"):
            embed_claims(judge, [conclusion.text])
            for index, claim in enumerate(judge.claims(conclusion.text)):
                sense = float(judge.hear(claim).sense[index])
                yield Sense(labelled.tree, conclusion.kind == "perfect", sense)
