"""Plan of a run: its episodes, and an estimate of the requests, tokens and cost of its models.

Each episode is walked through twice without a model: along the shortest full traversal, 3n turns and the conclusion,
and along the longest, where every proposal fails until the forced move, n(2H + 3) turns and the conclusion; a turn
limit cuts both short. The agent writes the requests itself, so prompts have their real length, except that every reply
counts as `REPLY_TOKENS`. Corrections, redone studies and reasoning are not included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from inquitree_gym.baselines import make_agent
from inquitree_gym.baselines.agent import asks_models, reply_record
from inquitree_gym.cli.output import note, out, print_json, print_table
from inquitree_gym.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.observations import ObservationRenderer
from inquitree_gym.envs.projection.env import ProjectionEnv
from inquitree_gym.envs.projection.observations import ProjectionRenderer
from inquitree_gym.envs.projection.runtime import projection_info
from inquitree_gym.envs.runtime import public_info
from inquitree_gym.llm import Chat, Completion, Message, MissingKey, Usage, estimated_tokens, run_sync
from inquitree_gym.log import Reply
from inquitree_gym.prompts import Prompts
from inquitree_gym.runner.environment_kinds import KINDS, PROJECTIONS
from inquitree_gym.runner.folder import RunStatus, run_status
from inquitree_gym.runner.growth import plan_run
from inquitree_gym.runner.models import ModelSettings, missing_keys
from inquitree_gym.runner.rules import expanded
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask

REPLY_TOKENS = 200
"""Estimated tokens of a reply: a short thought and a move."""
LEGEND = (
    "Requests from 3n turns (every proposal accepted) to n(2H + 3) (every one forced) or the turn limit, and the "
    f"conclusion; about 4 bytes of a prompt to a token, {REPLY_TOKENS} tokens to a reply, prices from litellm's list. "
    "Corrections, redone studies and reasoning are extra; torn episodes count in full, and the cache is not considered."
)
PROJECTION_LEGEND = (
    f"One request for each level; about 4 bytes of a prompt per token, {REPLY_TOKENS} tokens per reply, prices from "
    "litellm's list. Corrections and reasoning are extra; torn episodes count in full, and the cache is not considered."
)
READER_LEGEND = "{reader} reads the actions, at most one request a turn; these requests are not included."
JUDGE_LEGEND = "{judge} judges {judged}; these requests are not included."
STATES = ("there", "torn", "missing", "damaged")

_EXPLORE, _CONCLUDE = (Reading(decision=each) for each in (Decision.EXPLORE, Decision.CONCLUDE))
_REPLY_TEXT = "THOUGHT: " + "so it is. " * 74 + "\nACTION: explore new subtopic"
_REPLY = Completion(_REPLY_TEXT, "stop", {}, None)
_Policy = Callable[[Engine, State], Reading]
_Turns = Iterator[tuple[str, dict[str, Any]]]
"""Observations with their info."""
Task = Tree | ProjectionTask


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """Estimate for one model of a study."""

    model: str
    """Label of the model."""
    episodes: int
    least: Usage
    most: Usage
    dollars: tuple[float, float] | None
    """Cost of the least and the most by litellm's price list; None without a price."""


def show_plan(study: StudyConfig, folder: Path, as_json: bool, as_new_version: bool = False) -> None:
    """Print the plan of a run of ``study`` into ``folder``. Writes nothing and sends no request.

    Raises:
        LogError: the study contradicts the run in the folder; see `plan_run`.
    """
    plan = plan_run(folder, study, as_new_version)
    study = plan.study.model_copy(update={"prompts": study.prompts})  # nothing is copied yet
    status = run_status(folder, study.specs())
    remaining = status.remaining
    environment = study.services[len(study.models) :] if remaining else ()
    asked = {spec.model for spec in remaining} | {service.label for service in environment}
    estimates = estimate(study, remaining, plan.trees.__getitem__)
    keys = missing_keys(study.services, asked)
    if as_json:
        print_json({
            "folder": str(folder),
            "added": plan.added,
            "episodes": [dict(zip(("agent", "model", "fake_level", "episodes", *STATES), row, strict=True))
                         for row in _count(study, status)],
            "models": [{**asdict(each), "least": _counts(each.least), "most": _counts(each.most)}
                       for each in estimates],
            "reader": study.reader_name,
            "judge": study.judge_name,
            "damaged": {spec.file_name: error for spec, error in status.damaged.items()},
            "no_key": {label: asdict(lack) for label, lack in keys.items()},
        })  # fmt: skip
        return
    print_table(f"Plan for {folder}", _plan_rows(_count(study, status)))
    if plan.added:
        out.print(Text(f"added to the run: {plan.added}"), soft_wrap=True)
    for spec, error in status.damaged.items():
        out.print(Text(f"damaged, and not played: {spec.file_name}: {error}"), soft_wrap=True)
    if study.models:
        print_table("Estimated requests", _estimate_rows(estimates))
        out.print(Text(LEGEND if study.env == "inquiry" else PROJECTION_LEGEND))
    if study.reader:
        out.print(Text(READER_LEGEND.format(reader=study.reader_name)))
    if study.judge:
        out.print(Text(JUDGE_LEGEND.format(judge=study.judge_name, judged=study.judge.judged)))
    note_missing_keys(keys)
    note_unsent_efforts(study.services)


def note_missing_keys(keys: Mapping[str, MissingKey]) -> None:
    """Print the missing API keys on the error stream."""
    for lack in dict.fromkeys(keys.values()):
        more = "" if lack.certain else "; without credentials of another kind every request will be refused"
        note(f"missing key: {lack.message}{more}")


def note_unsent_efforts(models: Sequence[ModelSettings]) -> None:
    """Print on the error stream the models whose reasoning effort is not sent."""
    for model in models:
        if model.reasoning_effort and "reasoning_effort" in model.chat_model().dropped:
            note(
                f"reasoning effort not sent to '{model.model}': its provider does not accept one, according to litellm"
            )


def _count(study: StudyConfig, status: RunStatus) -> list[tuple[Any, ...]]:
    """Return agent, model, fake level, and the numbers of episodes in all and by state."""

    def key(spec: EpisodeSpec) -> tuple[str, str, int]:
        return spec.agent, spec.model, spec.fake_level

    counts = [Counter(map(key, part)) for part in (status.complete, status.torn, status.missing, status.damaged)]
    kinds = dict.fromkeys(map(key, study.specs()))
    return [(*kind, sum(count[kind] for count in counts), *(count[kind] for count in counts)) for kind in kinds]


def _plan_rows(counts: Sequence[tuple[Any, ...]]) -> Iterator[list[str]]:
    yield ["agent", "model", "fakes", "episodes", *STATES]
    for row in counts:
        yield [*map(str, row)]
    yield ["all", "", "", *(str(sum(column)) for column in list(zip(*counts, strict=True))[3:])]


def _estimate_rows(estimates: Sequence[ModelEstimate]) -> Iterator[list[str]]:
    yield ["model", "episodes", "requests", "prompt tokens", "reply tokens", "US dollars"]
    for each in estimates:
        pairs = zip(_counts(each.least).values(), _counts(each.most).values(), strict=True)
        dollars = "unknown" if each.dollars is None else f"{each.dollars[0]:,.2f} – {each.dollars[1]:,.2f}"
        yield [each.model, str(each.episodes), *(f"{low:,} – {high:,}" for low, high in pairs), dollars]


def _counts(usage: Usage) -> dict[str, int]:
    return {"requests": usage.replies, "prompt": usage.prompt_tokens or 0, "completion": usage.completion_tokens or 0}


def estimate(
    study: StudyConfig, specs: Iterable[EpisodeSpec], load: Callable[[str], Task] | None = None
) -> list[ModelEstimate]:
    """Estimate what playing ``specs`` from the start takes, by model.

    Args:
        study: the study.
        specs: its episodes.
        load: returns a tree or a projection task by its name; None for those of this machine.
    """
    load = load or KINDS[study.env].load
    wanted = Counter((spec.model, spec.agent, spec.tree) for spec in specs if spec.model)
    return [
        _estimate(
            study, model, {(agent, load(tree)): n for (label, agent, tree), n in wanted.items() if label == model.label}
        )
        for model in study.models
    ]


def _estimate(study: StudyConfig, model: ModelSettings, wanted: Mapping[tuple[str, Task], int]) -> ModelEstimate:
    """Estimate for the numbers of episodes by agent and task that are ``wanted`` of a model."""
    chat = model.chat_model()
    usages, prices = [], []
    for policy in (_succeed, _fail):
        parts = [run_sync(_usage(study, model, *key, policy)) * number for key, number in wanted.items()]
        usages.append(total := sum(parts, Usage()))
        prices.append(chat.price(total.prompt_tokens or 0, total.completion_tokens or 0))
    low, high = prices
    dollars = None if low is None or high is None else (low, high)
    least, most = usages
    return ModelEstimate(model.label, sum(wanted.values()), least, most, dollars)


async def _usage(study: StudyConfig, model: ModelSettings, agent_name: str, task: Task, policy: _Policy) -> Usage:
    """Let an agent play one episode whose proposals are read by ``policy``, and count its requests."""
    env, turns = _inquiry(study, task, policy) if isinstance(task, Tree) else _projection(study, task)
    agent = make_agent(agent_name, env, chat=model.chat_model(), **study.agent_settings(agent_name, model))
    assert asks_models(agent)
    agent.reset(0)
    total = Usage()

    async def ask(chat: Chat, messages: list[Message], *, role: str, seed: int, check: Callable[[str], str]) -> Reply:
        nonlocal total
        total += Usage(1, prompt_tokens=sum(map(estimated_tokens, messages)), completion_tokens=REPLY_TOKENS)
        return reply_record(1, role, _REPLY, check)

    for observation, info in turns:
        await agent.decide(observation, info, ask)
    return total


def _inquiry(study: StudyConfig, tree: Tree, policy: _Policy) -> tuple[InquiryEnv, _Turns]:
    rules = Rules(threshold=0.5, max_turns=study.turn_limit(tree)).override(expanded(study.rules))
    env = InquiryEnv(tree, embedder=study.embedder, threshold=rules.threshold)  # never embeds a text
    return env, _walk(tree, rules, Prompts(study.prompts_name), policy)


def _projection(study: StudyConfig, task: ProjectionTask) -> tuple[ProjectionEnv, _Turns]:
    env = ProjectionEnv(task, **PROJECTIONS.all_rules(study.rules))  # never embeds a text
    shown = ProjectionRenderer(task, Prompts(study.prompts_name, PROJECTIONS.templates), env.rules)
    return env, ((shown.render(turn), projection_info(env.rules, turn)) for turn in range(len(env.rules.levels)))


def _walk(tree: Tree, rules: Rules, prompts: Prompts, policy: _Policy) -> _Turns:
    """Yield each observation of an episode with its info."""
    engine = Engine(tree, rules)
    observations = ObservationRenderer(tree, prompts, engine)
    event = engine.start(0)
    while event.state.phase != Phase.END:
        yield observations.render(event), public_info(event)
        event = engine.advance(event.state, policy(engine, event.state))


def _succeed(engine: Engine, state: State) -> Reading:
    """Name an admissible candidate every time."""
    if state.phase == Phase.TOPIC:
        return Reading(next(i for i in engine.admissible(state) if not state.visits[i]), 1.0)
    if state.phase == Phase.SUBTOPIC:
        return Reading(engine.studies_of[state.subtopic][0], 1.0)
    return _decide(engine, state)


def _fail(engine: Engine, state: State) -> Reading:
    """Name no candidate, so that every move is forced."""
    return Reading() if state.phase in (Phase.TOPIC, Phase.SUBTOPIC) else _decide(engine, state)


def _decide(engine: Engine, state: State) -> Reading:
    return _CONCLUDE if state.visited == (1 << engine.n) - 1 else _EXPLORE
