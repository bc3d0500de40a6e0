"""Judges of the conclusions of inquiries, by name, and `judge`, which asks one about a conclusion."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from inquitree_gym.errors import JudgeError
from inquitree_gym.inquiry.judges.quality import Verdict, mean_score
from inquitree_gym.inquiry.trajectory import concluding_turn, world_of
from inquitree_gym.judging.judgement import AsyncJudge, InProcessJudge, Judged, JudgedText, version_of
from inquitree_gym.judging.stored import Payload
from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import TreeInWorld, in_world, poles_in

if TYPE_CHECKING:
    from inquitree_gym.inquiry.judges.llm import JudgeOptions, LLMJudge
    from inquitree_gym.log import Episode

KIND = "inquiry"
Verdicts = tuple[Verdict, ...]


class VerdictRecord(JsonlRecord):
    """Verdict on one conclusion item."""

    item: str
    score: float | None = Field(ge=0, le=1, allow_inf_nan=False)
    """S in [0, 1]. None for an unscored item."""
    why: str


class StoredVerdicts(Payload):
    """Verdicts on a conclusion, as they are stored."""

    verdicts: tuple[VerdictRecord, ...]
    """In tree order."""

    @model_validator(mode="after")
    def _check_items(self) -> Self:
        if len({verdict.item for verdict in self.verdicts}) < len(self.verdicts):
            raise ValueError("an item has two verdicts")
        return self

    @classmethod
    def _of(cls, task: TreeInWorld, judged: Verdicts) -> Self:
        """Name the items of the verdicts."""
        if len(judged) != len(task.conclusions):
            raise JudgeError(
                f"a judgement of {task.id} must have {len(task.conclusions)} verdicts, one per conclusion item in tree "
                f"order, got {len(judged)}"
            )
        return cls(
            verdicts=tuple(
                VerdictRecord(item=item.id, score=verdict.score, why=verdict.why)
                for item, verdict in zip(task.conclusions, judged, strict=True)
            )
        )

    def check(self, task: TreeInWorld) -> None:
        """See `Payload.check`."""
        named, items = [verdict.item for verdict in self.verdicts], [item.id for item in task.conclusions]
        if named != items:
            raise JudgeError(f"its items must be {', '.join(items)}, got {', '.join(named) or 'none'}")

    @property
    def value(self) -> Verdicts:
        """The verdicts, in tree order."""
        return tuple(Verdict(verdict.score, verdict.why) for verdict in self.verdicts)

    @property
    def unscored(self) -> int:
        """Number of items without a score."""
        return sum(verdict.score is None for verdict in self.verdicts)

    @property
    def why(self) -> str:
        """Reason why the first unscored item has no score."""
        return next((verdict.why or "no verdict" for verdict in self.verdicts if verdict.score is None), "")


class ConclusionJudging:
    """Judges of conclusions. See `protocols.Judging` for the members."""

    noun = "conclusion"
    part = "item"
    payload = StoredVerdicts
    presets: Mapping[str, Mapping[str, Any]] = {"llm": {}, "llm-paper": {"orders": 1, "variants": False}}

    @property
    def options(self) -> type[JudgeOptions]:
        """Options of judges that ask a chat model."""
        from inquitree_gym.inquiry.judges.llm import JudgeOptions

        return JudgeOptions

    @property
    def judges(self) -> Mapping[str, Any]:
        """Makers of judges by the prefix of their names."""
        return {
            "nli": lambda model, options: _nli(model),
            "llm": _llm,
            "llm-paper": lambda model, options: _llm(model, replace(options, **self.presets["llm-paper"])),
        }

    def texts(self, episode: Episode[Any]) -> Iterator[JudgedText]:
        """Yield the conclusion."""
        if (turn := concluding_turn(episode)) is not None:
            yield JudgedText(turn.turn, turn.action)

    def about(self, task: Tree, episode: Episode[Any]) -> TreeInWorld:
        """Return the tree in the world of an episode."""
        return in_world(task, world_of(task, episode))

    def own_judged(self, episode: Episode[Any], task: Tree) -> Judged:
        """Return no verdict: a judge of conclusions has to be named."""
        return Judged("")


JUDGING = ConclusionJudging()


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
        """Mean S over the items, in [0, 1]. None if an item is unscored."""
        return mean_score(self.verdicts.values())


def judge(
    tree: str | os.PathLike[str] | Tree,
    conclusion: str,
    judge: str | AsyncJudge[Any],
    *,
    world: str = "actual",
    options: JudgeOptions | None = None,
) -> JudgedConclusion:
    """Judge a conclusion about a tree, whatever was seen of its results.

    Args:
        tree: an id, a path, or a `Tree`.
        conclusion: free text, such as a numbered list.
        judge: ``"nli:MODEL"``, ``"llm:MODEL"``, ``"llm-paper:MODEL"``, or an `AsyncJudge`.
        world: ``"actual"``, or the id of the world whose conclusion items count.
        options: options of a named judge that asks a chat model.

    Raises:
        TreeError: the tree is unknown or invalid.
        OptionError: the judge is unknown.
        JudgeError: the judge cannot be loaded, or a score is outside of [0, 1].
        ServiceError: the judge's service rejects every request.
        MissingExtraError: the judge asks a chat model, and litellm is not installed.
    """
    from inquitree_gym.judging.registry import load_judge
    from inquitree_gym.llm import run_sync

    found, by = load_tree(tree), load_judge(judge, options, KIND)
    read = in_world(found, tuple(poles[0] for poles in poles_in(found, world)))
    verdicts = StoredVerdicts.of(read, run_sync(by.judge(read, conclusion)).payload)
    named = dict(zip((item.id for item in read.conclusions), verdicts.value, strict=True))
    return JudgedConclusion(read.id, by.name, version_of(by.config), named)


def _nli(model: str) -> InProcessJudge[TreeInWorld]:
    from inquitree_gym.inquiry.judges.nli import VERSION, NLIJudge
    from inquitree_gym.judging.nli import CrossEncoderInference

    inference = CrossEncoderInference(model)
    config = partial(inference.config, VERSION)
    return InProcessJudge(f"nli:{model}", config, cache(lambda tree: NLIJudge(tree, inference)))


def _llm(model: str, options: JudgeOptions) -> LLMJudge:
    from inquitree_gym.inquiry.judges.llm import LLMJudge

    return LLMJudge(
        options.chat(model),
        repeats=options.repeats,
        orders=options.orders,
        variants=options.variants,
        cache=options.reply_cache,
        budget=options.budget,
    )
