"""The local judge of projections: it pairs clauses with the true claims and rates them by their sense, on local models.

A projection is split into claims. Each is compared with every true claim. A true claim is a statement whose false side
is its contraries. True and projected claims are paired one to one so that the sum of their similarities is highest.
Claims whose similarity is below a threshold form no pair. The first claims without a pair are the extraneous claims.
All ratings are 0 if the paired claims are, on average, too far from every text of the task.

A rating is 1 if the projected claim is on the side of the true claim, and -1 if it is on the side of a contrary. It is
0 if the projected claim names no direction, leaves open what will be found, or restates a disclosed question or step.
The side is decided by the claim's vector and by the words for directions in both claims. A claim of no change is rated
-1 against a directed claim, and 1 against a claim of no change. The ratings of both orders are equal, since nothing
depends on the order of the two claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inquitree_gym.embeddings import Embedder, TextVectors, load_embedder
from inquitree_gym.judging.claims import is_copy, is_rejection
from inquitree_gym.judging.sense import JUDGE_EMBEDDER, Bools, Floats, SenseReader, Statement, hear_surely
from inquitree_gym.projection.judges.alignment import ORDERS, Alignment
from inquitree_gym.projection.judges.clauses import projected_claims
from inquitree_gym.projection.judges.direction import (
    agreement,
    denies_change,
    is_hedged,
    is_null,
    is_undirected,
    polarity,
)
from inquitree_gym.projection.judges.pairing import one_to_one, paired_alignment

if TYPE_CHECKING:
    from inquitree_gym.embeddings.vectors import Vector
    from inquitree_gym.trees.disclosure import ProjectionTask

VERSION = 2
"""Version of the ratings. A change that moves any of them raises it."""

_MOST_WORDS = 2.0
"""Maximum number of words shared with one side alone that are counted."""


class LocalProjectionSettings(NamedTuple):
    """Thresholds and weights of the local judge of projections, calibrated for `JUDGE_EMBEDDER`.

    See docs/projectionbench.md.
    """

    pair_at: float = 0.25
    """Similarity from which a projected claim can be analogous to a true one."""
    about_at: float = 0.47
    """Smallest mean similarity of the paired claims to their nearest texts of the task. Below it, all ratings are 0."""
    extra_at: float = 0.5
    """Similarity from which an extraneous claim is rated against a true one."""
    asked_at: float = 0.25
    """A claim asserts nothing if its distance (1 - similarity) to a disclosed question or step is below this share of
    its distance to the nearest true claim."""
    plain_weight: float = 2.4
    """Weight of the claim's leaning towards the true claim in MiniLM's space. See `SenseReader.leanings`."""
    adapted_weight: float = 4.5
    """Weight of the leaning in the space of the judge's adapter."""
    wording_weight: float = 0.85
    """Weight per word that the claim shares with one side alone, up to two words."""
    undirected_at: float = 0.5
    """A claim without a word for a direction takes no side if its sense is nearer to 0 than this."""
    direction_weight: float = 1.4
    """Weight of the agreement between the direction words of both claims. See `agreement`."""

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """Weights of the parts of the sense."""
        return self.plain_weight, self.adapted_weight, self.wording_weight, self.direction_weight


PROJECTION_SETTINGS = LocalProjectionSettings()


class ProjectedClaim(NamedTuple):
    """A projected claim compared with all true claims. Each array has one element per true claim."""

    text: str
    similarity: Floats
    adapted: Floats
    """Similarity in the space of the judge's adapter."""
    nearest: float
    """Similarity to the nearest text of the task, claim, question or step."""
    sense: Floats
    ratings: Floats
    margin: float
    """Smallest distance of a similarity or a scaled sense from a threshold."""

    def why(self, index: int) -> str:
        """Return the reason for a rating: the claim, with its similarity and sense for one true claim."""
        return f"similarity {self.similarity[index]:.3f}, sense {self.sense[index]:+.2f}: {self.text}"


class LocalProjectionJudge:
    """Judge of projections on local embeddings: the reward of the projection environments."""

    name = "local"
    version = VERSION

    def __init__(
        self, task: ProjectionTask, vectors: TextVectors, *, settings: LocalProjectionSettings = PROJECTION_SETTINGS
    ) -> None:
        """Judge projections about one task.

        Args:
            task: the task.
            vectors: vectors of the task's texts.
            settings: thresholds and weights.
        """
        self.task = task
        self.vectors = vectors
        self._settings = settings
        self._true = [claim.text for claim in task.claims]
        statements = [Statement((claim.text,), claim.contraries) for claim in task.claims]
        self._asked = asked_texts(task)
        self._sense = SenseReader(vectors, statements, self._asked)
        self._bare_true = np.array([_bare(text) for text in self._true])
        self._false = [set(map(_bare, claim.contraries)) for claim in task.claims]
        self._null = np.array([is_null(text) for text in self._true])
        self._hedged = np.array([is_hedged(text) for text in self._true])

    def judge(self, projection: str) -> Alignment:
        """Align a projection with the true claims. An empty one has no claims. See `ProjectionJudge.judge`."""
        heard = [self.hear(claim) for claim in self.claims(projection)]
        size = len(self._true)
        similarities = np.array([each.similarity for each in heard]).reshape(len(heard), size)
        ratings = np.array([each.ratings for each in heard]).reshape(len(heard), size)
        adapted = np.array([each.adapted for each in heard]).reshape(len(heard), size)
        can_pair = similarities >= self._settings.pair_at
        nearness = np.where(can_pair, (similarities + adapted) / 2 + 1, -1.0)
        counted = self._counted(heard, similarities, nearness)
        return paired_alignment(
            [each.text for each in heard],
            nearness,
            np.repeat(np.where(counted, ratings, 0.0)[..., None], ORDERS, axis=-1),  # this judge hears no order
            lambda claim, index: heard[claim].why(index),
        )

    def _counted(self, heard: Sequence[ProjectedClaim], similarities: Floats, nearness: Floats) -> Bools:
        """Return which ratings count, shape (P, M): none for a projection about something else."""
        pairs = one_to_one(nearness)
        if not pairs or np.mean([heard[j].nearest for j in pairs.values()]) < self._settings.about_at:
            return np.zeros(nearness.shape, np.bool_)
        counted: Bools = similarities >= self._settings.extra_at
        counted[list(pairs.values()), list(pairs)] = True
        return counted

    def claims(self, projection: str) -> list[str]:
        """Return the claims of a projection that count. `judge` needs their vectors."""
        return projected_claims(projection, len(self._true))

    def uncached_texts(self, projection: str) -> Iterator[tuple[TextVectors, str]]:
        """Yield the texts that `judge` would embed, with the vectors that they can be stored in."""
        for claim in self.claims(projection):
            if not self.vectors.knows(claim):
                yield self.vectors, claim

    def hear(self, claim: str) -> ProjectedClaim:
        """Compare one claim with all true claims."""
        return hear_surely(claim, self.vectors, lambda vector: self._hear(claim, vector))

    def _hear(self, claim: str, vector: Vector) -> ProjectedClaim:
        at, compared = self._settings, self._sense.compare(claim, vector)
        similarity = compared.similarity
        sense = self._sense.turned(claim, np.array(at.weights) @ self._parts(claim, vector))
        asked = 1 - compared.asked - at.asked_at * (1 - similarity.max())
        about = similarity >= at.pair_at
        ratings = np.where(about & (asked >= 0), self._ratings(claim, sense, about), 0.0)
        senses = np.abs(sense)[about]  # elsewhere the rating is 0 in any sense
        thresholds = np.abs([*(similarity - at.pair_at), *(similarity - at.extra_at), asked])
        decisive = np.minimum(senses, np.abs(senses - at.undirected_at))
        margin = min(*thresholds, decisive.min(initial=np.inf) / self._scale)
        nearest = max(float(similarity.max()), compared.asked)
        return ProjectedClaim(claim, similarity, compared.adapted, nearest, sense, ratings, float(margin))

    @property
    def _scale(self) -> float:
        """Maximum change of the sense per unit of similarity. Two texts of a claim differ by half a unit or more."""
        return max(1.0, 2 * (self._settings.plain_weight + self._settings.adapted_weight))

    def sense_parts(self, claim: str) -> Floats:
        """Return the parts of a claim's sense for every true claim, in the order of the weights, shape (4, M)."""
        return self._parts(claim, self.vectors.of(claim))

    def _parts(self, claim: str, vector: Vector) -> Floats:
        null = is_null(claim)
        told = zip(self._true, self._null, strict=True)
        agrees = [0 if null or is_level else agreement(claim, text) for text, is_level in told]
        words = np.clip(self._sense.wordings(claim), -_MOST_WORDS, _MOST_WORDS)
        return np.stack([*self._sense.leanings(vector), words, np.array(agrees, np.float64)])

    def _ratings(self, claim: str, sense: Floats, about: Bools) -> Floats:
        """Return the rating of a claim against every true claim that it is ``about``."""
        rated = np.where(sense >= 0, 1.0, -1.0)
        if polarity(claim) == 0:
            rated = np.where(np.abs(sense) < self._settings.undirected_at, 0.0, rated)
        null = np.where(self._null, is_null(claim), denies_change(claim))
        rated = np.where(null, np.where(self._null, 1.0, -1.0), np.where(self._null, -1.0, rated))
        rated = np.zeros_like(rated) if is_undirected(claim) or self._restates(claim) else rated
        _, sides = self._sense.sides(claim, about)
        true, false = ("false", "true") if is_rejection(claim) else ("true", "false")
        rated = np.where(sides == true, 1.0, np.where(sides == false, -1.0, rated))
        rated = np.where(~self._hedged & is_hedged(claim), 0.0, rated)
        said = _bare(claim)
        return np.where([said in each for each in self._false], -1.0, np.where(self._bare_true == said, 1.0, rated))

    def _restates(self, claim: str) -> bool:
        """Return whether a claim is a disclosed question or step with a few words added."""
        return any(is_copy(claim, text) for text in self._asked)


@lru_cache(maxsize=256)
def local_projection_judge(
    task: ProjectionTask, embedder: Embedder | None = None, settings: LocalProjectionSettings = PROJECTION_SETTINGS
) -> LocalProjectionJudge:
    """Return the local judge of a task, the same object each time.

    Rewards and scores use it with the embedder that its settings are calibrated for, unless another embedder is given.
    """
    embedder = embedder or load_embedder(JUDGE_EMBEDDER)
    return LocalProjectionJudge(task, TextVectors(task.digest, tuple(task.texts()), embedder), settings=settings)


def local_projection_config(
    embedder: Embedder, settings: LocalProjectionSettings = PROJECTION_SETTINGS
) -> dict[str, Any]:
    """Return version and settings of the local judge, for logs and files of judgements."""
    return {
        "version": VERSION,
        "embedder": embedder.name,
        "digest": embedder.digest,
        "settings": settings._asdict(),
    }


def asked_texts(task: ProjectionTask) -> tuple[str, ...]:
    """Return the disclosed texts that assert nothing: topic, question and steps, but not the null hypothesis."""
    return (*task.disclosure.texts_of("question"), *task.disclosure.texts_of("procedure"))


def _bare(text: str) -> str:
    """Return a text in lower case and without a full stop, to recognise copies."""
    return text.casefold().rstrip(". ")
