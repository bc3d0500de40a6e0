"""The local judge: split a conclusion into claims and compare each with what the tree says, without any service.

A claim is compared with every *statement* of the tree: the conclusion items, each with its false variants, and the
results of the studies, each with its fakes. The claim *speaks of* the statements that it is most similar to. Its
*sense* tells whether it says the statement or one of its false texts: the contrast of the distances to them, and the
words that it shares with one side alone. A claim that quotes a text of one side takes that side. One that quotes what
both sides say takes none.

An item is stated in full by a claim that says the item, or by claims that say all the evidence it needs. It is stated
in part (0.6) by part of that evidence, or by a claim that comes less near. It counts as contradicted if a claim says
one of its false variants, or a fake of its evidence whose true result no claim says. A contradicted item scores 0
whatever else is claimed, and a result that is said both ways is no evidence, so nothing is gained by saying everything.
A claim asserts nothing if it leaves open what holds, if it repeats a question or study of the tree, or if it is no
sentence that speaks of the tree at all, such as its words in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.embeddings import TreeVectors, load_embedder
from inquitree_gym.inquiry.judges.quality import FULL, NOTHING, PARTIAL, Verdict
from inquitree_gym.judging.claims import counted_claims, is_open, is_rejection
from inquitree_gym.judging.sense import (
    JUDGE_EMBEDDER,
    Bools,
    Floats,
    SenseReader,
    SenseWeights,
    Statement,
    hear_surely,
)

if TYPE_CHECKING:
    from inquitree_gym.embeddings.vectors import Vector
    from inquitree_gym.trees import Tree

VERSION = 3
"""Version of the verdicts. A change that moves any of them raises it."""


class LocalJudgeSettings(NamedTuple):
    """Thresholds and weights of the local judge, calibrated for `JUDGE_EMBEDDER`. See docs/validity.md."""

    asserts_at: float = 0.5
    """Adapted similarity to any statement from which a claim asserts something."""
    item_at: float = 0.65
    """Similarity from which a claim speaks of a conclusion item."""
    full_at: float = 0.7
    """Similarity from which a claim states its item in full."""
    result_at: float = 0.55
    """Similarity from which a claim speaks of a result."""
    near: float = 0.2
    """A claim speaks of no statement that is less similar than its nearest one by more than this."""
    asked_at: float = 0.5
    """A claim asserts nothing if its distance (1 - similarity) to a question, study or hint is below this share of its
    distance to the nearest statement."""
    says_item: float = 0.0
    """Sense from which a claim says the item that it speaks of."""
    says_result: float = -1.0
    """Sense from which a claim says the result that it speaks of. Agents mostly report what they saw."""
    denies_item: float = 4.0
    """A claim says a false variant of the item that it speaks of if its sense is at most minus this."""
    denies_near_item: float = 2.0
    """The same for a claim that is as near to the item as `full_at`."""
    denies_result: float = 4.0
    """A claim says a fake of the result that it speaks of if its sense is at most minus this."""
    plain_weight: float = SenseWeights().plain
    """See `SenseWeights`."""
    adapted_weight: float = SenseWeights().adapted
    """See `SenseWeights`."""
    wording_weight: float = SenseWeights().wording
    """See `SenseWeights`."""


SETTINGS = LocalJudgeSettings()


class Hearing(NamedTuple):
    """A claim as the judge reads it. Each array has one element per statement, items first."""

    claim: str
    similarity: Floats
    sense: Floats
    says: Bools
    denies: Bools
    margin: float
    """Least distance of a similarity or a scaled sense to a threshold."""

    @property
    def why(self) -> str:
        """The claim with the numbers of its nearest statement."""
        nearest = int(self.similarity.argmax())
        return f"similarity {self.similarity[nearest]:.3f}, sense {self.sense[nearest]:+.2f}: {self.claim}"


class LocalJudge:
    """Contrastive judge on local embeddings: the reward of the environments.

    Its settings are calibrated for the embedder ``inquitree-judge-1``. Another embedder serves for both of its spaces.
    """

    name = "local"
    version = VERSION

    def __init__(self, vectors: TreeVectors, *, settings: LocalJudgeSettings = SETTINGS) -> None:
        """Judge conclusions about one tree.

        Args:
            vectors: vectors of the tree's texts.
            settings: thresholds and weights.
        """
        self.vectors = vectors
        self._settings = settings
        tree = vectors.tree
        self.statements = tree_statements(tree)
        self._n_items = len(tree.conclusions)
        place = {study.id: self._n_items + k for k, study in enumerate(tree.studies)}
        self._evidence = [[[place[study] for study in group] for group in item.needs] for item in tree.conclusions]
        weights = SenseWeights(settings.plain_weight, settings.adapted_weight, settings.wording_weight)
        self._sense = SenseReader(vectors, self.statements, question_texts(tree), weights)

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order."""
        heard = [self.hear(claim) for claim in self.claims(conclusion)]
        nothing = np.zeros(len(self.statements), np.bool_)
        said = np.logical_or.reduce([nothing, *(each.says for each in heard)])
        denied = np.logical_or.reduce([nothing, *(each.denies for each in heard)])
        return tuple(self._verdict(item, heard, said, denied) for item in range(self._n_items))

    def claims(self, conclusion: str) -> list[str]:
        """Return the claims that count. `judge` needs their vectors."""
        return counted_claims(conclusion, self._n_items)

    def hear(self, claim: str) -> Hearing:
        """Compare one claim with all statements of the tree."""
        return hear_surely(claim, self.vectors, lambda vector: self._hear(claim, vector))

    def _verdict(self, item: int, heard: Sequence[Hearing], said: Bools, denied: Bools) -> Verdict:
        """Judge one item. ``said`` and ``denied`` are True for each statement that some claim says or denies."""
        if denial := next((each for each in heard if each.denies[item]), None):
            return Verdict(NOTHING, f"contradicted; {denial.why}")
        groups = self._evidence[item]
        evidence = [study for group in groups for study in group]
        void = [study for study in evidence if said[study] and denied[study]]
        own = [each for each in heard if each.says[item] and not (each.says | each.denies)[void].any()]
        best = max(own, key=lambda each: float(each.similarity[item]), default=None)
        in_full = best is not None and best.similarity[item] >= self._settings.full_at
        believed = [study for study in evidence if denied[study] and not said[study]]
        if believed and not in_full:
            fooled = next(each for each in heard if each.denies[believed[0]])
            return Verdict(NOTHING, f"a fake of its evidence was believed; {fooled.why}")
        met = sum(bool((said & ~denied)[group].any()) for group in groups)
        if in_full and best is not None:
            return Verdict(FULL, best.why)
        if met == len(groups):
            return Verdict(FULL, "all its evidence is stated")
        if met or best is not None:
            return Verdict(PARTIAL, f"{met} of {len(groups)} parts of its evidence are stated" if met else own[0].why)
        return Verdict(NOTHING, "not claimed")

    def _hear(self, claim: str, vector: Vector) -> Hearing:
        at, (similarity, adapted, sense, nearest_question) = self._settings, self._sense.compare(claim, vector)
        asked = 1 - nearest_question - at.asked_at * (1 - similarity.max())
        asserted = adapted.max() - at.asserts_at
        about = np.minimum(similarity - self._speaks_at, similarity - similarity.max() + at.near)
        spoken_of = (about >= 0) & (asked >= 0) & (self._open | (not is_open(claim)))
        denies_at = np.where(self._are_items & (similarity >= at.full_at), at.denies_near_item, self._denies_at)
        both, sides = self._sense.sides(claim, spoken_of)
        rejected = is_rejection(claim)
        # To reject a side that is quoted says the other one only where it is clear which side it is.
        says_at = np.where((sides != "") & rejected, denies_at, self._says_at)
        quotes_false = sides == ("true" if rejected else "false")
        speaks = spoken_of & (asserted >= 0)
        says = speaks & (sense >= says_at) & ~(both | quotes_false | (sides == "both"))
        denies = (speaks & ((sense <= -denies_at) | both)) | quotes_false
        margins = (asked, asserted, *about, *(similarity - at.full_at))
        senses = (*(sense - says_at), *(sense + denies_at))
        margin = min(*map(abs, margins), min(map(abs, senses)) / self._sense.scale)
        return Hearing(claim, similarity, sense, says, denies, float(margin))

    @cached_property
    def _speaks_at(self) -> Floats:
        at = self._settings
        return self._by_kind(at.item_at, at.result_at)

    @cached_property
    def _says_at(self) -> Floats:
        at = self._settings
        return self._by_kind(at.says_item, at.says_result)

    @cached_property
    def _denies_at(self) -> Floats:
        at = self._settings
        return self._by_kind(at.denies_item, at.denies_result)

    @cached_property
    def _are_items(self) -> Bools:
        return np.arange(len(self.statements)) < self._n_items

    def _by_kind(self, of_items: float, of_results: float) -> Floats:
        return np.where(self._are_items, of_items, of_results)

    @cached_property
    def _open(self) -> Bools:
        """True for each statement that leaves something open itself."""
        return np.array([is_open(each.true[0]) for each in self.statements])


@lru_cache(maxsize=64)
def local_judge(tree: Tree) -> LocalJudge:
    """Return the local judge of a tree with the embedder for which its settings are calibrated.

    Rewards and scores use it whatever embedder reads the actions, so that runs are comparable.
    """
    return LocalJudge(judge_vectors(tree))


def judge_vectors(tree: Tree, *, lasting: bool = True) -> TreeVectors:
    """Return vectors of the texts that claims are compared with. See `TreeVectors` for ``lasting``."""
    texts = (text for each in tree_statements(tree) for side in each for text in side)
    embedder = load_embedder(JUDGE_EMBEDDER)
    return TreeVectors(tree, embedder, lasting=lasting, texts=(*question_texts(tree), *texts))


def tree_statements(tree: Tree) -> tuple[Statement, ...]:
    """Return the conclusion items of a tree with their false variants, then the results of its studies with fakes."""
    items = (Statement(item.options[:1], item.options[1:]) for item in tree.conclusions)
    wordings = (study.outcomes for study in tree.studies)
    results = (Statement(true, tuple(text for texts in fakes for text in texts)) for true, *fakes in wordings)
    return *items, *results


def question_texts(tree: Tree) -> tuple[str, ...]:
    """Return the texts of a tree that ask or instruct: topic, subtopics, studies, and the hints that come nearest."""
    hints = (*(subtopic.hints for subtopic in tree.subtopics), *(study.hints for study in tree.studies))
    nodes = (*tree.subtopics, *tree.studies)
    return tree.topic, *(node.text for node in nodes), *(ladder[-2] for ladder in hints)
