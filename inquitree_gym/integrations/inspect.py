"""inspect_ai adapter: task, solver, scorer, and export of logs (extra ``inspect``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from inquitree_gym.errors import OptionError, require

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalMetric,
        EvalResults,
        EvalSample,
        EvalScore,
        EvalSpec,
        write_eval_log,
    )
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        Model,
        ModelOutput,
        get_model,
    )
    from inspect_ai.scorer import Score, Scorer, Target, ci, mean, scorer
    from inspect_ai.solver import Generate, Solver, TaskState, solver
except ModuleNotFoundError:
    require("inspect_ai", "inspect")
    raise

from inquitree_gym.baselines import make_agent
from inquitree_gym.integrations.messages import message_row
from inquitree_gym.integrations.session import check_tasks, session_score, task_environment
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.llm import MAX_REPLY, Completion, Message
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.results.logs import agent_label
from inquitree_gym.results.score import score_episode
from inquitree_gym.rollout import aplay, in_step_thread
from inquitree_gym.runs.study import ALL

VERSION = 2
"""Version of the task, higher with every change that moves a score."""
_SCORES = "inquitree"
"""Entry of a sample's store: scores and fingerprint, or nothing without a conclusion."""
SCORER = "episode_scores"
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def research(
    papers: str | int | Sequence[str | int] = ALL,
    env: str = DEFAULT_KIND,
    seeds: int | Sequence[int | str] = 5,
    agent: str = "llm",
    episodes: str | None = None,
    **kwargs: Any,
) -> Task:
    """Let a model play research environments.

    Args:
        papers: see `make_tasks`.
        env: kind of environment.
        seeds: see `make_tasks`.
        agent: an agent of the kind that asks a model.
        episodes: folder for a log of every episode, which ``inquitree report`` reads. None writes none.
        kwargs: settings of the kind. See `make_tasks`.

    Raises:
        OptionError: a value is out of range or unknown.
        TreeError, EmbedderError: a task or the embedder is unknown.
    """
    agents = kind(env).play.model_agents
    if agent not in agents:
        raise OptionError(f"agent must be {' or '.join(agents)}, got {agent!r:.80}")
    names = papers if isinstance(papers, str) else [str(name) for name in _listed(papers)]
    settings = {name: _numbers(value) for name, value in kwargs.items()}
    tasks = make_tasks(names, env=env, seeds=_numbers(seeds), **settings)
    check_tasks(tasks)
    return Task(
        dataset=MemoryDataset([_sample(each) for each in tasks], name="inquitree"),
        solver=play_episode(agent, episodes),
        scorer=episode_scores(),
        config=GenerateConfig(temperature=0.0),
        version=VERSION,
    )


@solver
def play_episode(agent: str = "llm", episodes: str | None = None) -> Solver:
    """Play the episode of a sample with the evaluated model as one of our agents. See `research`."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        played = _task_of(state)
        model = get_model()
        env = await in_step_thread(task_environment, played)
        player = make_agent(agent, env, chat=InspectChat(model), prompts=played.parsed.prompts)
        file = None if episodes is None else _log_file(Path(episodes), state, f"{agent} {model}")
        episode = await aplay(env, player, played.seed, file=file, options=played.options)
        _record(state, episode)
        return state

    return solve


@scorer(metrics={"*": [mean(), ci(cluster="task")]})
def episode_scores() -> Scorer:
    """Return the scores of our log: the reward and the measures of the kind. None for an unconcluded episode."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(_SCORES)
        if found is None:
            return Score.unscored(reason="not_concluded", explanation="The episode has no conclusion.")
        return Score(
            value=found["scores"], answer=state.output.completion, metadata={"fingerprint": found["fingerprint"]}
        )

    return score


class InspectChat:
    """A model of inspect_ai as the chat of an agent. Inspect_ai counts, caches, limits and logs its requests."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def config(self) -> dict[str, Any]:
        """See `Chat.config`. The settings of the requests are in the log of inspect_ai."""
        return {"model": str(self._model), "harness": "inspect_ai"}

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply to ``messages``. See `Chat.complete`. Errors are those of inspect_ai."""
        own = GenerateConfig(seed=seed) if self._model.config.seed is None else GenerateConfig()
        output = await self._model.generate(chat_messages(messages), config=own)
        text = output.completion
        return Completion(
            text=text[:MAX_REPLY],
            finish_reason=output.stop_reason,
            tokens=_tokens(output),
            cost=None if output.usage is None else output.usage.total_cost,
            seconds=output.time or 0.0,
            cut=max(0, len(text) - MAX_REPLY),
        )


def chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return messages in the form of inspect_ai."""
    return [_ROLES[message["role"]](content=message["content"]) for message in messages]


def _listed(papers: int | Sequence[str | int]) -> Sequence[str | int]:
    """Return papers as a list. The command line of inspect_ai passes digits as a number."""
    return [papers] if isinstance(papers, int) else papers


def _numbers(given: Any) -> Any:
    """Return a list with digits as numbers. The command line of inspect_ai passes them as text within lists."""
    if not isinstance(given, list):
        return given
    return [int(each) if isinstance(each, str) and each.isdecimal() else each for each in given]


def _sample(task: EpisodeTask) -> Sample:
    loaded = task.load()
    plain = {**asdict(task), "cell": dict(task.cell), "settings": dict(task.settings)}
    return Sample(input=getattr(loaded, "topic", loaded.id), id=task.key, metadata=plain)


def _task_of(state: TaskState) -> EpisodeTask:
    names = ("kind", "task", "version", "seed", "cell", "settings")
    return EpisodeTask(**{name: state.metadata[name] for name in names})


def _record(state: TaskState, episode: Episode[Any]) -> None:
    """Put conversation, conclusion and scores where inspect_ai and the scorer look for them."""
    score = session_score(episode, _task_of(state).load())
    if score is None:
        return
    state.messages = chat_messages(message_row(episode)["messages"])
    state.output = ModelOutput.from_content(str(state.model), episode.actions[-1])
    state.store.set(_SCORES, {"scores": {"reward": score.reward, **score.metrics}, "fingerprint": episode.fingerprint})


def _log_file(folder: Path, state: TaskState, player: str) -> Path:
    """Return the log of a sample, which names model and epoch, so that a retried sample resumes it."""
    return folder / f"{file_stem(str(state.sample_id))}_{file_stem(player)}_e{state.epoch}.jsonl"


def _tokens(output: ModelOutput) -> dict[str, int]:
    """Return tokens by kind, as `Completion.tokens` has them."""
    used = output.usage
    if used is None:
        return {}
    cached = used.input_tokens_cache_read or 0
    prompt = used.input_tokens + cached + (used.input_tokens_cache_write or 0)
    more = {"reasoning": used.reasoning_tokens or 0, "cached": cached}
    return {"prompt": prompt, "completion": used.output_tokens} | {name: count for name, count in more.items() if count}


def write_inspect_logs(episodes: Iterable[tuple[Any, Episode[Any]]], folder: Path) -> list[Path]:
    """Write an ``.eval`` file for each kind and agent of concluded episodes into ``folder``, and return the files.

    Raises:
        LogError: an episode was played on another version of its task.
    """
    by_agent: defaultdict[tuple[str, str], list[tuple[Any, Episode[Any]]]] = defaultdict(list)
    for task, episode in episodes:
        by_agent[episode.header.task.kind, agent_label(episode.header.agent)].append((task, episode))
    folder.mkdir(parents=True, exist_ok=True)
    several = len({name for name, _ in by_agent}) > 1
    files = []
    for (name, agent), group in by_agent.items():
        files.append(folder / f"{name + '-' if several else ''}{file_stem(agent)}.eval")
        write_eval_log(_eval_log(agent, group), files[-1])
    return files


def _eval_log(agent: str, episodes: list[tuple[Any, Episode[Any]]]) -> EvalLog:
    times = defaultdict[str, int](int)
    samples, scores = [], []
    for task, episode in episodes:
        score = score_episode(episode, task)
        key = _sample_id(episode)
        times[key] += 1  # a key that comes again, from another run, is another epoch of its sample
        values = {name: value for name, value in score.values.items() if value is not None}
        scores.append({"reward": episode.footer.episode_return if episode.footer else 0.0, **values})
        samples.append(_eval_sample(task, episode, scores[-1], key, times[key]))
    names = list(dict.fromkeys(name for each in scores for name in each))
    means = {name: fmean(each[name] for each in scores if name in each) for name in names}
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=min(episode.header.started for _, episode in episodes),
            task="inquitree_gym/research",
            task_version=VERSION,
            dataset=EvalDataset(name="inquitree", samples=len(times), sample_ids=list(times)),
            model=agent,
            config=EvalConfig(),
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                EvalScore(name=name, scorer=SCORER, metrics={"mean": EvalMetric(name="mean", value=value)})
                for name, value in means.items()
            ],
        ),
        samples=samples,
    )


def _eval_sample(task: Any, episode: Episode[Any], scores: dict[str, float], key: str, epoch: int) -> EvalSample:
    row = message_row(episode)
    messages = chat_messages(row.pop("messages"))
    conclusion = messages[-1].text
    return EvalSample(
        id=key,
        epoch=epoch,
        input=getattr(task, "topic", task.id),
        target="",
        messages=messages,
        output=ModelOutput.from_content(row["agent"], conclusion),
        scores={SCORER: Score(value=dict(scores), answer=conclusion)},
        metadata=row,
    )


def _sample_id(episode: Episode[Any]) -> str:
    """Return the name of a sample: task, cell, seed, and the rules other than the default's."""
    header, settings = episode.header, kind(episode.header.task.kind).settings
    defaults = {name: value for name, value in settings().all_rules().items() if value is not None}
    cell = [f"{name}={header.rules[name]}" for name in settings.grid if name in header.rules]
    others = [
        f"{name}={value}"
        for name, value in sorted(header.rules.items())
        if name not in settings.grid and value != defaults.get(name, value)
    ]
    return "/".join([f"{header.task.id}@{header.task.version}", *cell, f"s{header.seed}", *others])
