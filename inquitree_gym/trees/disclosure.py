"""Disclosures, the material of projection tasks: a study disclosed level by level, and the claims of its outcome.

The steps and claims are those of ProjectionBench (arXiv:2605.30284). The texts are the project's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from inquitree_gym.trees.fields import CLEAN, Canary, FrozenModel, Identifier, Paper, Provenance, Text, document_digest

Level = Literal["question", "null", "procedure"]
"""Level of a disclosure: topic and question, null hypothesis, or procedure."""
LEVELS: tuple[Level, ...] = ("question", "null", "procedure")
MAX_CLAIMS = 50
MAX_DISCLOSED = 12_000
"""Maximum number of characters that are disclosed about one study, so that they fit into an observation."""
TOLD = "-told-"
"""Part of the id of a control, between the task whose claims are scored and the task that is disclosed."""


class OutcomeClaim(FrozenModel):
    """One relation that the study found between a manipulated and a measured variable."""

    id: Identifier
    independent: Text
    """Independent variable, a noun phrase."""
    relation: Text
    """Effect with its direction, such as "increases". At most five words."""
    dependent: Text
    """Dependent variable, a noun phrase."""
    contraries: tuple[Text, ...] = Field(min_length=1)
    """Sentences that cannot be true if the claim is true: the opposite effect, or no effect."""
    evidence: tuple[Identifier, ...] = Field(min_length=1)
    """Studies whose true result shows the claim."""

    @cached_property
    def text(self) -> str:
        """The claim as a sentence."""
        sentence = f"{self.independent} {self.relation} {self.dependent}"
        return sentence[0].upper() + sentence[1:].removesuffix(".") + "."


class Disclosure(FrozenModel):
    """A study disclosed level by level. Agents never see ``hypothesis``, ``outcome`` and ``claims``."""

    topic: Text
    """Field of the study, at most four words."""
    domain: Annotated[str, Field(min_length=1, max_length=60), CLEAN]
    """Group of papers in reports."""
    question: Text
    """Open question, at most nine words."""
    hypothesis: Text
    """Expected effect: "If …, then …" or "When …, then …"."""
    null_hypothesis: Text
    """Hypothesis that there is no effect: "If …, then there is no change in …"."""
    procedure: tuple[Text, ...] = Field(min_length=1)
    """Steps of the study, without results."""
    outcome: Text
    """All claims in one sentence."""
    claims: tuple[OutcomeClaim, ...] = Field(min_length=1, max_length=MAX_CLAIMS)

    @model_validator(mode="after")
    def _can_be_shown(self) -> Disclosure:
        if (size := sum(len(text) for level in LEVELS for text in self.texts_of(level))) > MAX_DISCLOSED:
            raise PydanticCustomError(
                "long_disclosure",
                "procedure: {size} characters are disclosed; topic, question, null hypothesis and procedure may hold "
                "{most} together",
                {"size": f"{size:,}", "most": f"{MAX_DISCLOSED:,}"},
            )
        return self

    @model_validator(mode="after")
    def _has_unique_claims(self) -> Disclosure:
        ids = [claim.id for claim in self.claims]
        if twins := sorted({name for name in ids if ids.count(name) > 1}):
            raise PydanticCustomError("repeated_claim", "claims: several have the id {id}", {"id": ", ".join(twins)})
        return self

    def texts_of(self, level: Level) -> tuple[str, ...]:
        """Return the texts that a level adds: topic and question, null hypothesis, or steps of the procedure."""
        match level:
            case "question":
                return self.topic, self.question
            case "null":
                return (self.null_hypothesis,)
            case "procedure":
                return self.procedure


class ProjectionTask(FrozenModel):
    """A disclosure with its paper: one task of the projection environments."""

    format: Literal["projection/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    paper: Paper
    disclosure: Disclosure
    provenance: Provenance
    """Sources of the facts."""

    def __hash__(self) -> int:
        """Return the hash of the digest, so that caches keyed by a task are fast."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical document, in hex. Identifies the task in logs and caches."""
        return document_digest(self)

    @property
    def group(self) -> str:
        """Group in tables: the domain."""
        return self.disclosure.domain

    @property
    def published(self) -> str:
        """Date of publication of the paper."""
        return self.paper.published.written

    @property
    def claims(self) -> tuple[OutcomeClaim, ...]:
        """The claims of the outcome."""
        return self.disclosure.claims

    def texts(self) -> Iterator[str]:
        """Yield every text that a judge compares: claims, contraries, and what is disclosed."""
        for claim in self.claims:
            yield from (claim.text, *claim.contraries)
        for level in LEVELS:
            yield from self.disclosure.texts_of(level)
