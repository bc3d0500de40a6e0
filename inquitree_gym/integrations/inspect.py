"""inspect_ai: inquiries as a task, our agents as its solver, our scores as its scorer (extra ``inspect``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inquitree_gym.errors import OptionError, require

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
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

from inquitree_gym.analysis.export import message_row
from inquitree_gym.baselines import MODEL_AGENT_NAMES, make_agent
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.integrations.session import session_score, task_environment
from inquitree_gym.integrations.tasks import FakeLevels, InquiryTask, MaxTurns, RulesLike, make_tasks
from inquitree_gym.llm import MAX_REPLY, Completion, Message
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.rollout import aplay, in_step_thread
from inquitree_gym.runner.study import ALL

VERSION = 1
"""Version of the task, higher with every change that moves a score."""
_SCORES = "inquitree"
"""Entry of a sample's store: scores and fingerprint, or nothing without a conclusion."""
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def inquiry(  # noqa: PLR0913  (one parameter per -T)
    papers: str | int | Sequence[str | int] = ALL,
    fake_level: FakeLevels = 0,
    seeds: int | Sequence[int | str] = 5,
    max_turns: MaxTurns = "default",
    agent: str = "llm",
    embedder: str = DEFAULT_EMBEDDER,
    rules: RulesLike = None,
    episodes: str | None = None,
) -> Task:
    """Let a model lead inquiries over research trees.

    Args:
        papers: the trees; see ``trees`` of `make_tasks`.
        fake_level: see `make_tasks`.
        seeds: see `make_tasks`.
        max_turns: see `make_tasks`.
        agent: ``llm`` or ``sceptic``.
        embedder: reads the moves.
        rules: see `make_tasks`.
        episodes: folder for a log of every episode, which ``inquitree report`` reads; None writes none.

    Raises:
        OptionError: a value is out of range or unknown.
        TreeError, EmbedderError: a tree or the embedder is unknown.
    """
    if agent not in MODEL_AGENT_NAMES:
        raise OptionError(f"agent is {' or '.join(MODEL_AGENT_NAMES)}, not {agent!r:.80}")
    load_embedder(embedder)
    names = papers if isinstance(papers, str) else [str(name) for name in _listed(papers)]
    tasks = make_tasks(names, seeds=_numbers(seeds), fake_level=_numbers(fake_level), max_turns=max_turns, rules=rules)
    return Task(
        dataset=MemoryDataset([_sample(each) for each in tasks], name="inquitree"),
        solver=play_inquiry(agent, embedder, episodes),
        scorer=inquiry_scores(),
        config=GenerateConfig(temperature=0.0),
        version=VERSION,
    )


@solver
def play_inquiry(agent: str = "llm", embedder: str = DEFAULT_EMBEDDER, episodes: str | None = None) -> Solver:
    """Play the inquiry of a sample with the evaluated model as one of our agents; see `inquiry`."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        given = InquiryTask(**{name: state.metadata[name] for name in ("tree", "version", "seed", "options")})
        model = get_model()
        env = await in_step_thread(task_environment, given, embedder)
        player = make_agent(agent, env, chat=InspectChat(model), prompts=given.preset)
        file = None if episodes is None else _log_file(Path(episodes), state, f"{agent} {model}")
        episode = await aplay(env, player, given.seed, file=file, options=dict(given.options))
        _record(state, episode)
        return state

    return solve


@scorer(metrics={"*": [mean(), ci(cluster="tree")]})
def inquiry_scores() -> Scorer:
    """Return the scores of our log: conclusion, coverage, unaided, turns; none for an inquiry without a conclusion."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(_SCORES)
        if found is None:
            return Score.unscored(reason="not_concluded", explanation="The inquiry has no conclusion.")
        return Score(
            value=found["scores"], answer=state.output.completion, metadata={"fingerprint": found["fingerprint"]}
        )

    return score


class InspectChat:
    """A model of inspect_ai as the chat of an agent; inspect_ai counts, caches, limits and logs its requests."""

    def __init__(self, model: Model) -> None:
        """Ask ``model``."""
        self._model = model

    @property
    def config(self) -> dict[str, Any]:
        """See `Chat.config`; the settings of the requests are in the log of inspect_ai."""
        return {"model": str(self._model), "harness": "inspect_ai"}

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply to ``messages``; see `Chat.complete`. Errors are those of inspect_ai."""
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
    """Return papers as a list; the command line of inspect_ai passes a paper in digits as a number."""
    return [papers] if isinstance(papers, int) else papers


def _numbers(given: Any) -> Any:
    """Return a list with digits as numbers; the command line of inspect_ai passes them as text within lists."""
    if not isinstance(given, list):
        return given
    return [int(each) if isinstance(each, str) and each.isdecimal() else each for each in given]


def _sample(given: InquiryTask) -> Sample:
    return Sample(input=given.load().topic, id=given.key, metadata=asdict(given) | {"options": dict(given.options)})


def _record(state: TaskState, episode: Episode) -> None:
    """Put conversation, conclusion and scores where inspect_ai and the scorer look for them."""
    tree = InquiryTask(state.metadata["tree"], state.metadata["version"], 0).load()
    scores = session_score(episode, tree)
    if scores is None:
        return
    state.messages = chat_messages(message_row(episode, tree)["messages"])
    state.output = ModelOutput.from_content(str(state.model), episode.actions[-1])
    state.store.set(_SCORES, {"scores": asdict(scores), "fingerprint": episode.fingerprint})


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
