"""Plan of a run: its episodes, and an estimate of the requests, tokens and cost of its models.

Each episode is walked through twice without a model, along its shortest and its longest course (`protocols.Play`). The
agent writes the requests itself, so prompts have their real length, except that every reply counts as `REPLY_TOKENS`.
Corrections and reasoning are not included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rich.text import Text

from inquitree_gym.baselines import make_agent
from inquitree_gym.baselines.agent import asks_models, reply_record
from inquitree_gym.cli.output import note_missing_keys, note_unsent_efforts, out, print_json, print_table
from inquitree_gym.kinds import kind
from inquitree_gym.llm import Chat, Completion, Message, Usage, estimated_tokens, run_sync
from inquitree_gym.log import Reply
from inquitree_gym.protocols import Course
from inquitree_gym.runner.growth import plan_run
from inquitree_gym.runner.services import (
    RunOptions,
    StopConditions,
    asked_models,
    environment_maker,
    environment_models,
    judge_settings,
    missing_keys,
)
from inquitree_gym.runs.folder import RunStatus, run_status
from inquitree_gym.runs.specs import EpisodeSpec, ModelSettings
from inquitree_gym.runs.study import StudyConfig

REPLY_TOKENS = 200
"""Estimated tokens of a reply: a short thought and a move."""
LEGEND = (
    f"{{course_note}} About 4 bytes of a prompt to a token, {REPLY_TOKENS} tokens to a reply, prices from litellm's "
    "list. Corrections and reasoning are extra; torn episodes count in full, and the cache is not considered."
)
ENVIRONMENT_LEGEND = "The environment asks {models}; these requests are not included."
JUDGE_LEGEND = "{judge} judges {judged}; these requests are not included."
STATES = ("there", "torn", "missing", "damaged")

_REPLY_TEXT = "THOUGHT: " + "so it is. " * 74 + "\nACTION: explore new subtopic"
_REPLY = Completion(_REPLY_TEXT, "stop", {}, None)


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """Estimate for one model of a study."""

    model: str
    """Label of the model."""
    episodes: int
    least: Usage
    most: Usage
    dollars: tuple[float, float] | None
    """Lowest and highest cost by litellm's price list. None without a price."""


def show_plan(study: StudyConfig, folder: Path, as_json: bool, as_new_version: bool = False) -> None:
    """Print the plan of a run of ``study`` into ``folder``. Writes and asks nothing. See `plan_run` for the errors."""
    plan = plan_run(folder, study, as_new_version)
    study = plan.study.model_copy(update={"prompts": study.prompts})  # nothing is copied yet
    status = run_status(folder, study.specs())
    remaining = status.remaining
    environment, judge = environment_models(study), judge_settings(study)
    asked = {spec.model for spec in remaining} | {model.label for model in environment if remaining}
    estimates = estimate(study, remaining, plan.tasks.__getitem__)
    keys = missing_keys(asked_models(study), asked)
    if as_json:
        print_json({
            "folder": str(folder),
            "added": plan.added,
            "episodes": [dict(zip(("agent", "model", *study.settings.grid, "episodes", *STATES), row, strict=True))
                         for row in _count(study, status)],
            "models": [{**asdict(each), "least": _counts(each.least), "most": _counts(each.most)}
                       for each in estimates],
            "environment": [model.label for model in environment],
            "judge": None if judge is None else judge.judge_name,
            "damaged": {spec.file_name: error for spec, error in status.damaged.items()},
            "no_key": {label: asdict(lack) for label, lack in keys.items()},
        })  # fmt: skip
        return
    print_table(f"Plan for {folder}", _plan_rows(study.settings.grid, _count(study, status)))
    if plan.added:
        out.print(Text(f"added to the run: {plan.added}"), soft_wrap=True)
    for spec, error in status.damaged.items():
        out.print(Text(f"damaged, and not played: {spec.file_name}: {error}"), soft_wrap=True)
    if study.models:
        print_table("Estimated requests", _estimate_rows(estimates))
        out.print(Text(LEGEND.format(course_note=kind(study.env).play.course_note)))
    if others := [model.label for model in environment if model != judge]:
        out.print(Text(ENVIRONMENT_LEGEND.format(models=", ".join(others))))
    if judge:
        out.print(Text(JUDGE_LEGEND.format(judge=judge.judge_name, judged=judge.judged)))
    note_missing_keys(keys)
    note_unsent_efforts(asked_models(study))


def _count(study: StudyConfig, status: RunStatus) -> list[tuple[Any, ...]]:
    """Return agent, model, the values on the grid, and the numbers of episodes in all and by state."""

    def key(spec: EpisodeSpec) -> tuple[Any, ...]:
        cell = dict(spec.cell)
        return spec.agent, spec.model, *(cell[name] for name in study.settings.grid)

    counts = [Counter(map(key, part)) for part in (status.complete, status.torn, status.missing, status.damaged)]
    groups = dict.fromkeys(map(key, study.specs()))
    return [(*group, sum(count[group] for count in counts), *(count[group] for count in counts)) for group in groups]


def _plan_rows(grid: Sequence[str], counts: Sequence[tuple[Any, ...]]) -> Iterator[list[str]]:
    yield ["agent", "model", *(name.replace("_", " ") for name in grid), "episodes", *STATES]
    for row in counts:
        yield [*map(str, row)]
    totals = [str(sum(column)) for column in list(zip(*counts, strict=True))[2 + len(grid) :]]
    yield ["all", "", *["" for _ in grid], *totals]


def _estimate_rows(estimates: Sequence[ModelEstimate]) -> Iterator[list[str]]:
    yield ["model", "episodes", "requests", "prompt tokens", "reply tokens", "US dollars"]
    for each in estimates:
        pairs = zip(_counts(each.least).values(), _counts(each.most).values(), strict=True)
        dollars = "unknown" if each.dollars is None else f"{each.dollars[0]:,.2f} – {each.dollars[1]:,.2f}"
        yield [each.model, str(each.episodes), *(f"{low:,} – {high:,}" for low, high in pairs), dollars]


def _counts(usage: Usage) -> dict[str, int]:
    return {"requests": usage.replies, "prompt": usage.prompt_tokens or 0, "completion": usage.completion_tokens or 0}


def estimate(
    study: StudyConfig, specs: Iterable[EpisodeSpec], load: Callable[[str], Any] | None = None
) -> list[ModelEstimate]:
    """Estimate what playing ``specs`` from the start takes, by model. ``load`` returns a task by its name."""
    load = cache(load or kind(study.env).tasks.load)
    wanted = Counter((spec.model, spec.agent, spec.task) for spec in specs if spec.model)
    return [
        _estimate(
            study, model, {(agent, load(task)): n for (label, agent, task), n in wanted.items() if label == model.label}
        )
        for model in study.models
    ]


def _estimate(study: StudyConfig, model: ModelSettings, wanted: Mapping[tuple[str, Any], int]) -> ModelEstimate:
    """Estimate for the numbers of episodes by agent and task that are ``wanted`` of a model."""
    chat = model.chat_model()
    least = most = Usage()
    for (agent, task), number in wanted.items():
        courses = kind(study.env).play.courses(task, study.settings, study.prompts_name)
        usages = [run_sync(_usage(study, model, agent, task, course)) for course in courses]
        least += _bound(usages, min) * number
        most += _bound(usages, max) * number
    low, high = (chat.price(total.prompt_tokens or 0, total.completion_tokens or 0) for total in (least, most))
    dollars = None if low is None or high is None else (low, high)
    return ModelEstimate(model.label, sum(wanted.values()), least, most, dollars)


def _bound(usages: Sequence[Usage], bound: Callable[[Iterable[int]], int]) -> Usage:
    """Return the least or the most of each figure: where a limit ends both courses, the shorter one may ask more."""
    return Usage(
        bound(usage.replies for usage in usages),
        prompt_tokens=bound(usage.prompt_tokens or 0 for usage in usages),
        completion_tokens=bound(usage.completion_tokens or 0 for usage in usages),
    )


async def _usage(study: StudyConfig, model: ModelSettings, agent_name: str, task: Any, course: Course) -> Usage:
    """Let an agent play along a course, and count its requests."""
    env = environment_maker(study, RunOptions(), StopConditions())(task)
    agent = make_agent(agent_name, env, chat=model.chat_model(), **study.agent_settings(agent_name, model))
    if not asks_models(agent):
        return Usage()
    agent.reset(0)
    total = Usage()

    async def ask(
        chat: Chat, messages: list[Message], *, role: str, check: Callable[[str], str], **request: Any
    ) -> Reply:
        nonlocal total
        total += Usage(1, prompt_tokens=sum(map(estimated_tokens, messages)), completion_tokens=REPLY_TOKENS)
        return reply_record(1, role, _REPLY, check)

    for observation, info in course:
        await agent.decide(observation, info, ask)
    return total
