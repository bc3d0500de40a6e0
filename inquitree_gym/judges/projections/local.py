"""The local judge of projections: clauses paired with the true claims, and rated by their sense, without any service.

A projection is split into claims. Each is compared with every true claim, which is a statement whose false side are its
contraries. True and projected claims are paired one to one so that the sum of their similarities is highest; claims
that are less near than a threshold form no pair. The first claims without a pair are the extraneous ones.

A rating is 1 if the claim takes the side of the true one, -1 if it takes that of a contrary, and 0 if it names no
direction, leaves open what holds, or restates what was disclosed as a question or a step. A claim of no change is -1
against a directed one, and 1 against one of no change. Nothing depends on the order of the two claims, so that the
ratings of both orders are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from inquitree_gym.embeddings import Embedder, TextVectors, load_embedder
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.judges.claims import is_rejection, stems
from inquitree_gym.judges.projections.alignment import ORDERS, Alignment
from inquitree_gym.judges.projections.clauses import projected_claims
from inquitree_gym.judges.projections.direction import is_hedged, is_null, is_undirected, polarity
from inquitree_gym.judges.projections.pairing import paired_alignment
from inquitree_gym.judges.sense import JUDGE_EMBEDDER, Bools, Floats, SenseReader, Statement, hear_surely
from inquitree_gym.trees.disclosure import ProjectionTask

VERSION = 1
"""Version of the ratings; a change that moves any of them raises it."""


class LocalProjectionSettings(NamedTuple):
    """Thresholds and weights of the local judge of projections, calibrated for `JUDGE_EMBEDDER`."""

    pair_at: float = 0.5
    """Similarity from which a projected claim can be analogous to a true one."""
    asked_at: float = 0.5
    """A claim asserts nothing if its distance (1 - similarity) to a disclosed question or step is below this share of
    its distance to the nearest true claim."""
    says: float = 0.0
    """Sense from which a claim says the true one."""
    denies: float = 0.5
    """Sense below minus which a claim says a contrary of the true one."""
    polarity_weight: float = 1.0
    """Weight of the directions that the words of claim and true claim tell, where they differ from a contrary's."""
    undirected: float = 0.0
    """Rating of a claim that names a change without its direction, against a directed claim."""


PROJECTION_SETTINGS = LocalProjectionSettings()


class ProjectedClaim(NamedTuple):
    """A projected claim as it was heard; each array has one element per true claim."""

    text: str
    similarity: Floats
    sense: Floats
    ratings: Floats
    margin: float
    """Least distance of a similarity or a scaled sense to a threshold."""

    def why(self, index: int) -> str:
        """The claim with its numbers against one true claim."""
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
            vectors: of its texts.
            settings: thresholds and weights.
        """
        self.task = task
        self.vectors = vectors
        self._settings = settings
        self._true = [claim.text for claim in task.claims]
        statements = [Statement((claim.text,), claim.contraries) for claim in task.claims]
        self._sense = SenseReader(vectors, statements, asked_texts(task))
        self._bare_true = np.array([_bare(text) for text in self._true])
        self._false = [set(map(_bare, claim.contraries)) for claim in task.claims]
        self._null = np.array([is_null(text) for text in self._true])
        self._undirected = np.array([is_undirected(text) for text in self._true])
        self._variables = [stems(f"{claim.independent} {claim.dependent}") for claim in task.claims]
        self._hedged = np.array([is_hedged(text) for text in self._true])
        self._polarity = np.array([_turning_polarity(each) for each in statements])

    def align(self, projection: str) -> Alignment:
        """Align a projection with the true claims; an empty one has no claims. See `ProjectionJudge.align`."""
        heard = [self.hear(claim) for claim in self.claims(projection)]
        size = len(self._true)
        similarities = np.array([each.similarity for each in heard]).reshape(len(heard), size)
        ratings = np.array([each.ratings for each in heard]).reshape(len(heard), size)
        return paired_alignment(
            [each.text for each in heard],
            similarities - self._settings.pair_at,
            np.repeat(ratings[..., None], ORDERS, axis=-1),  # this judge hears no order
            lambda claim, index: heard[claim].why(index),
        )

    def claims(self, projection: str) -> list[str]:
        """Return the claims of a projection that count; `align` needs their vectors."""
        return projected_claims(projection, len(self._true))

    def uncached_texts(self, projection: str) -> Iterator[tuple[TextVectors, str]]:
        """Yield the texts that `align` would embed, with the vectors that they can be stored in."""
        for claim in self.claims(projection):
            if not self.vectors.knows(claim):
                yield self.vectors, claim

    def hear(self, claim: str) -> ProjectedClaim:
        """Compare one claim with all true claims."""
        return hear_surely(claim, self.vectors, lambda vector: self._hear(claim, vector))

    def _hear(self, claim: str, vector: Vector) -> ProjectedClaim:
        at, compared = self._settings, self._sense.compare(claim, vector)
        similarity = compared.similarity
        agrees = polarity(claim) * self._polarity
        sense = compared.sense + at.polarity_weight * agrees
        asked = 1 - compared.asked - at.asked_at * (1 - similarity.max())
        about = similarity >= at.pair_at
        ratings = np.where(about & (asked >= 0), self._ratings(claim, sense, about), 0.0)
        senses = np.abs([sense - at.says, sense + at.denies])[:, about]  # elsewhere the rating is 0 in any sense
        margin = min(abs(asked), *abs(similarity - at.pair_at), senses.min(initial=np.inf) / self._sense.scale)
        return ProjectedClaim(claim, similarity, sense, ratings, float(margin))

    def _ratings(self, claim: str, sense: Floats, about: Bools) -> Floats:
        """Return the rating of a claim against every true claim that it is ``about``."""
        at = self._settings
        by_sense = np.where(sense >= at.says, 1.0, np.where(sense <= -at.denies, -1.0, 0.0))
        null = is_null(claim)
        rated = np.where(self._null == null, np.where(null, 1.0, by_sense), -1.0)
        vague = [is_undirected(claim, variables) and not null for variables in self._variables]
        undirected: Bools = ~(self._null | self._undirected) & vague
        rated = np.where(undirected, at.undirected, rated)
        _, sides = self._sense.sides(claim, about)
        true, false = ("false", "true") if is_rejection(claim) else ("true", "false")
        rated = np.where(sides == true, 1.0, np.where(sides == false, -1.0, rated))
        rated = np.where(~self._hedged & is_hedged(claim), 0.0, rated)
        said = _bare(claim)
        return np.where([said in each for each in self._false], -1.0, np.where(self._bare_true == said, 1.0, rated))


@lru_cache(maxsize=256)
def local_projection_judge(
    task: ProjectionTask, embedder: Embedder | None = None, settings: LocalProjectionSettings = PROJECTION_SETTINGS
) -> LocalProjectionJudge:
    """Return the local judge of a task, the same object each time.

    Rewards and scores use it with the embedder for which its settings are calibrated, unless another one is given.
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
    """Return the disclosed texts that ask or instruct: topic, question and steps; the null hypothesis asserts."""
    return (*task.disclosure.texts_of("question"), *task.disclosure.texts_of("procedure"))


def _turning_polarity(statement: Statement) -> int:
    """Return the polarity of the true text if that of a false one is opposite, else 0."""
    own = polarity(statement.true[0])
    return own if any(polarity(text) == -own for text in statement.false) else 0


def _bare(text: str) -> str:
    """Return a text without case and full stop, to tell a copy."""
    return text.casefold().rstrip(". ")
