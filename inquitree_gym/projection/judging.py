"""Judges of projections, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from inquitree_gym.judging.judgement import LOCAL, InProcessJudge, Judged, JudgedText, version_of
from inquitree_gym.projection.judges.records import StoredAlignment, recorded_alignment

if TYPE_CHECKING:
    from inquitree_gym.log import Episode
    from inquitree_gym.projection.judges.llm import LLMProjectionJudge, ProjectionJudgeOptions
    from inquitree_gym.trees.disclosure import ProjectionTask


class ProjectionJudging:
    """Judges of projections. See `parts.Judging` for the members."""

    noun = "projection"
    part = "projection"
    payload = StoredAlignment
    own = ""
    presets: Mapping[str, Mapping[str, Any]] = {"llm": {}}

    @property
    def options(self) -> type[ProjectionJudgeOptions]:
        """Options of judges that ask a chat model."""
        from inquitree_gym.projection.judges.llm import ProjectionJudgeOptions

        return ProjectionJudgeOptions

    @property
    def judges(self) -> Mapping[str, Any]:
        """Makers of judges by the prefix of their names."""
        return {LOCAL: lambda model, options: _local(), "nli": lambda model, options: _nli(model), "llm": _llm}

    def texts(self, episode: Episode[Any]) -> Iterator[JudgedText]:
        """Yield the projection of every level."""
        for turn in episode.turns:
            yield JudgedText(turn.turn, turn.action)

    def own_judged(self, episode: Episode[Any], task: ProjectionTask) -> Judged:
        """Return the alignments by the judge of the reward."""
        judge = episode.header.setup.judge
        alignments = {turn.turn: recorded_alignment(turn.event) for turn in episode.turns}
        return Judged(str(judge.get("name", "unknown")), version_of(judge), alignments)


JUDGING = ProjectionJudging()


def _local() -> InProcessJudge[ProjectionTask]:
    from inquitree_gym.embeddings import load_embedder
    from inquitree_gym.judging.sense import JUDGE_EMBEDDER
    from inquitree_gym.projection.judges.local import local_projection_config, local_projection_judge

    return InProcessJudge(LOCAL, lambda: local_projection_config(load_embedder(JUDGE_EMBEDDER)), local_projection_judge)


def _nli(model: str) -> InProcessJudge[ProjectionTask]:
    from inquitree_gym.judging.nli import CrossEncoderInference
    from inquitree_gym.projection.judges.nli import VERSION, NLIProjectionJudge

    inference = CrossEncoderInference(model)
    config = partial(inference.config, VERSION)
    return InProcessJudge(f"nli:{model}", config, cache(lambda task: NLIProjectionJudge(task, inference)))


def _llm(model: str, options: ProjectionJudgeOptions) -> LLMProjectionJudge:
    from inquitree_gym.projection.judges.llm import LLMProjectionJudge

    return LLMProjectionJudge(options.chat(model), settings=options, cache=options.reply_cache, budget=options.budget)
