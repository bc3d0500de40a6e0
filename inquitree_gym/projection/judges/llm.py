"""A judge of projections that asks a chat model, step by step: analogous claims, extraneous claims, ratings.

The steps are those of ProjectionBench (arXiv:2605.30284, section 2). The prompts are the project's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from inquitree_gym.errors import OptionError
from inquitree_gym.judging.asking import Scored, Talk, UnscoredError, judging_chat
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.registry import ChatOptions
from inquitree_gym.llm import Budget, Chat, ReplyCache
from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, ORDERS, Alignment
from inquitree_gym.projection.judges.requests import (
    ALIGNMENT_TEMPLATES,
    AlignmentRequest,
    Scale,
    analogous_request,
    blind_request,
    extraneous_request,
    matches_request,
    ratings_request,
    read_analogous,
    read_claims,
    read_matches,
    read_ratings,
)
from inquitree_gym.projection.observations import projection_prompts
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import MAX_ACTION_LENGTH, readable
from inquitree_gym.trees.disclosure import ProjectionTask

VERSION = 1
"""Version of the rule that turns replies into alignments. The templates have a digest of their own."""
LLM = "llm"
"""Prefix of the names of judges that ask a chat model."""

Pairing = Literal["analogous", "blind"]
"""Extraction of the projected claims: with the true claims in view, as in the paper, or blind and matched later."""
Requests = Literal["pairs", "table"]
"""Requests for ratings: one per pair and order, as in the paper, or one per order for all pairs."""

_FAULTS = {
    "analogous": "no JSON object with a claim or N/A for every true claim",
    "claims": "no JSON list of claims",
    "matches": "no JSON object with a projected claim of its own or N/A for every true claim",
    "rating": "no rating that can be read",
}


@dataclass(frozen=True, kw_only=True)
class LLMProjectionSettings:
    """Settings of a judge of projections that asks a chat model."""

    alignment: Annotated[
        Requests, Field(description="Requests for ratings: pairs, one per pair and order, or table, one per order.")
    ] = "pairs"
    pairing: Annotated[
        Pairing, Field(description="Extraction of projected claims: analogous, beside the true claims, or blind.")
    ] = "analogous"
    ratings: Annotated[Scale, Field(description="Ratings that are accepted: steps, or real for any number.")] = "steps"
    undirected: Annotated[
        Literal[-1, 0, 1],
        BeforeValidator(lambda given: int(given) if isinstance(given, str) else given),
        Field(description="Rating of a claim without a direction against a directed one: -1, 0 or 1."),
    ] = 0
    repeat: Annotated[int, Field(ge=0, description="Number of the repetition, from 0: the seed of the requests.")] = 0

    def __post_init__(self) -> None:
        """Check the values. Raise `OptionError` for an unknown one."""
        known: dict[str, Sequence[object]] = {
            "alignment": ("pairs", "table"),
            "pairing": ("analogous", "blind"),
            "ratings": ("steps", "real"),
            "undirected": (-1, 0, 1),
        }
        for name, values in known.items():
            if (value := getattr(self, name)) not in values:
                raise OptionError(f"{name} of a judge must be one of {', '.join(map(repr, values))}, got {value!r}")
        if self.repeat < 0:
            raise OptionError(f"repeat of a judge must be an integer from 0, got {self.repeat}")


@dataclass(frozen=True, kw_only=True)
class ProjectionJudgeOptions(LLMProjectionSettings, ChatOptions):
    """Options of judges of projections that ask a chat model."""

    @property
    def requests(self) -> str:
        """Requests about each projection, in words."""
        pairs = "every pair of claims" if self.alignment == "pairs" else "all pairs of claims"
        return f"2 requests each and 2 for {pairs}"


@dataclass(frozen=True, slots=True)
class _Extracted:
    """Claims of a projection."""

    analogous: tuple[str | None, ...]
    extraneous: tuple[str, ...]

    def pairs(self, true: Sequence[str]) -> list[tuple[int, int]]:
        """Return the pairs to rate, by the index of the true claim and of the projected one.

        Analogous claims have the index of their true claim, extraneous ones follow.
        """
        paired = [(i, i) for i, claim in enumerate(self.analogous) if claim is not None]
        return [*paired, *((i, len(true) + j) for j in range(len(self.extraneous)) for i in range(len(true)))]

    def text(self, index: int) -> str:
        """Return the projected claim with an index of `pairs`."""
        return (*self.analogous, *self.extraneous)[index] or ""


@dataclass(frozen=True, slots=True)
class _Ratings:
    """Ratings and reasons that were read, by index of the true claim, of the projected one, and order."""

    said: dict[tuple[int, int, int], Scored] = field(default_factory=dict)

    def alignment(self, found: _Extracted, size: int) -> Alignment:
        """Return the alignment. A rating that was not read is NaN."""
        ratings = np.full((size + len(found.extraneous), size, ORDERS), np.nan)
        for (i, j, order), (rating, _) in self.said.items():
            ratings[j, i, order] = np.nan if rating is None else rating
        return Alignment(
            analogous=found.analogous,
            extraneous=found.extraneous,
            pair_ratings=ratings[range(size), range(size)],
            extra_ratings=ratings[size:],
            reasons=tuple(self._reason(i) or "no analogous claim" for i in range(size)),
        )

    def _reason(self, index: int) -> str:
        said = (self.said.get((index, index, order)) for order in range(ORDERS))
        return " | ".join(
            dict.fromkeys(f"{rating:g}: {why}" for rating, why in filter(None, said) if rating is not None)
        )


class LLMProjectionJudge:
    """Judge of projections by a chat model.

    For M true claims, each with an analogous claim, and E extraneous claims, it takes 2 + 2·M·(1 + E) requests, or 4
    with ``alignment="table"``. A projection stays unscored if a reply or a rating cannot be read, or if a request
    fails. Then no further request is made. The alignment holds the ratings so far, and the cache holds the paid
    replies.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        settings: LLMProjectionSettings | None = None,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        """Judge by ``chat``.

        Args:
            chat: the model, with its temperature.
            settings: how it is asked.
            cache: cache of replies. None for the folder ``judge`` of the package's cache.
            budget: caps on cost and tokens, may be shared. None for no cap.
            prompts: prompts with the templates `ALIGNMENT_TEMPLATES`. None for the package's.

        Raises:
            OptionError: the cost is capped and the model's price unknown.
        """
        self.name = f"{LLM}:{chat.config['model']}"
        self.budget = budget or Budget()
        self._chat = judging_chat(chat, self.budget, cache)
        self._settings = settings or LLMProjectionSettings()
        self._prompts = prompts or projection_prompts(names=ALIGNMENT_TEMPLATES)

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the ratings, besides task and projection. Plain values."""
        return {
            "version": VERSION,
            "chat": self._chat.config,
            **{setting.name: getattr(self._settings, setting.name) for setting in fields(LLMProjectionSettings)},
            "prompts": self._prompts.digest,
        }

    async def judge(self, task: ProjectionTask, projection: str, /) -> Judgement[Alignment | None]:
        """Align one projection with the true claims. A projection without a letter has no claims and takes no request.

        Raises:
            ServiceError: the service rejects every request: wrong key, unknown model or exhausted quota.
            CacheError: a paid reply could not be cached.
        """
        text = readable(projection[:MAX_ACTION_LENGTH])
        talk = Talk(self._chat)
        found, ratings, why = None, _Ratings(), ""
        try:
            found = await self._extracted(task, text, talk)
            await self._rate_all(task, found, talk, ratings)
        except UnscoredError as error:
            why = str(error)
        alignment = None if found is None else ratings.alignment(found, len(task.claims))
        return talk.judgement(alignment, why)

    async def _extracted(self, task: ProjectionTask, text: str, talk: Talk) -> _Extracted:
        if not any(map(str.isalpha, text)):
            return _Extracted((None,) * len(task.claims), ())
        extract = self._blind if self._settings.pairing == "blind" else self._analogous
        return await extract(task, text, talk)

    async def _analogous(self, task: ProjectionTask, text: str, talk: Talk) -> _Extracted:
        """Extract the claims with the true claims in view: the analogous claims, then up to three extraneous ones."""
        request = analogous_request(task, text, self._settings.repeat)
        analogous = read_analogous(await self._ask(talk, request), request.codes)
        if analogous is None:
            raise talk.refuse(_FAULTS["analogous"])
        found = [claim for claim in analogous if claim is not None]
        extras = read_claims(
            await self._ask(talk, extraneous_request(task, text, self._settings.repeat, found, MAX_EXTRAS))
        )
        if extras is None:
            raise talk.refuse(_FAULTS["claims"])
        return _Extracted(tuple(analogous), tuple(extras[:MAX_EXTRAS]))

    async def _blind(self, task: ProjectionTask, text: str, talk: Talk) -> _Extracted:
        """Extract the claims without showing the true claims, then match both."""
        claims = read_claims(await self._ask(talk, blind_request(task, text, self._settings.repeat)))
        if claims is None:
            raise talk.refuse(_FAULTS["claims"])
        if not claims:
            return _Extracted((None,) * len(task.claims), ())
        request = matches_request(task, claims, self._settings.repeat)
        matches = read_matches(await self._ask(talk, request), request.codes, len(claims))
        if matches is None:
            raise talk.refuse(_FAULTS["matches"])
        others = [claim for index, claim in enumerate(claims) if index not in matches]
        analogous = tuple(None if index is None else claims[index] for index in matches)
        return _Extracted(analogous, tuple(others[:MAX_EXTRAS]))

    async def _ask(self, talk: Talk, request: AlignmentRequest) -> str:
        return await talk.ask(request.messages(self._prompts), self._settings.repeat)

    async def _rate_all(self, task: ProjectionTask, found: _Extracted, talk: Talk, ratings: _Ratings) -> None:
        """Rate the pairs of the extracted claims in both orders, up to the first rating that cannot be read."""
        true = [claim.text for claim in task.claims]
        pairs = found.pairs(true)
        if not pairs:
            return
        chunks = [pairs] if self._settings.alignment == "table" else [[pair] for pair in pairs]
        for order in range(ORDERS):
            for chunk in chunks:
                shown = [(true[i], found.text(j)) for i, j in chunk]
                scored = await self._rate(task, shown, order, talk)
                ratings.said.update(((*pair, order), each) for pair, each in zip(chunk, scored, strict=True))
                if unread := sum(rating is None for rating, _ in scored):
                    raise talk.refuse(_FAULTS["rating"], unread)

    async def _rate(
        self, task: ProjectionTask, pairs: Sequence[tuple[str, str]], order: int, talk: Talk
    ) -> list[Scored]:
        """Return rating and reason of some pairs in one order."""
        at = self._settings
        request = ratings_request(task, pairs, swapped=bool(order), repeat=at.repeat, undirected=at.undirected)
        return read_ratings(await self._ask(talk, request), request.codes, at.ratings)
