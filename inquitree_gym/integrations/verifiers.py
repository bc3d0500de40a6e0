"""verifiers and prime-rl: tasks, an environment with one seat, and a harness that runs in this process.

The package in ``environments/inquitree`` makes them the plugin ``inquitree`` (extra ``verifiers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import httpx
from pydantic import model_validator

from inquitree_gym.baselines import LLMAgent
from inquitree_gym.baselines.conversation import read_move, system
from inquitree_gym.baselines.llm import CONTEXT
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import InquiTreeError, require
from inquitree_gym.integrations.session import InquirySession, play_task
from inquitree_gym.integrations.tasks import InquiryTask, MaxTurns, make_tasks
from inquitree_gym.llm import MAX_REPLY, Completion, Message
from inquitree_gym.prompts import AGENT_TEMPLATE_NAMES, Prompts
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.runner.study import ALL

try:
    import verifiers.v1 as vf
except ModuleNotFoundError:
    require("verifiers", "verifiers")
    raise


class InquiryTasksetConfig(vf.TasksetConfig):
    """Settings under ``--env.taskset``; see `make_tasks`."""

    trees: str | list[str] = ALL
    seeds: int | list[int] = 5
    fake_level: int | str | list[int] = 0
    max_turns: MaxTurns = "default"
    embedder: str = DEFAULT_EMBEDDER
    rules: str | dict[str, Any] | None = None

    @property
    def tasks(self) -> tuple[InquiryTask, ...]:
        """The tasks of these settings."""
        names = ("trees", "seeds", "fake_level", "max_turns", "rules")
        return make_tasks(**{name: getattr(self, name) for name in names})

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse bad settings here, so that verifiers reports them as faults of the configuration."""
        try:
            load_embedder(self.embedder)
            _ = self.tasks
        except InquiTreeError as error:
            raise ValueError(str(error)) from error
        return self


class InquiryTaskData(vf.TaskData):
    """A task as it travels to another process, with the embedder that reads its moves."""

    tree: str
    version: int
    seed: int
    options: dict[str, Any]
    embedder: str

    @property
    def inquiry(self) -> InquiryTask:
        """The task, as sessions take it."""
        return InquiryTask(self.tree, self.version, self.seed, self.options)


class InquiryVerifiersTask(vf.Task[InquiryTaskData]):
    """One inquiry, named by the key of its `InquiryTask`."""

    @property
    def key(self) -> str:
        """Name such as ``paper12@1/f3/s0``."""
        return str(self.data.inquiry.key)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Let the oracle play; return whether it earned a reward."""
        episode = await in_step_thread(lambda: play_task(self.data.inquiry, embedder=self.data.embedder))
        return episode.footer is not None and episode.footer.episode_return > 0


class InquiryTaskset(vf.Taskset[InquiryVerifiersTask, InquiryTasksetConfig]):
    """Trees × fake levels × seeds. A task has no prompt, because the environment opens the conversation."""

    def load(self) -> Iterator[InquiryVerifiersTask]:
        """Yield the tasks."""
        for task in self.config.tasks:
            data = InquiryTaskData(
                name=task.key,
                system_prompt=Prompts(task.preset, AGENT_TEMPLATE_NAMES).render("llm_system"),
                tree=task.tree,
                version=task.version,
                seed=task.seed,
                options=dict(task.options),
                embedder=self.config.embedder,
            )
            yield InquiryVerifiersTask(data, self.config.task)


class InquiryEnvConfig(vf.EnvConfig):
    """Settings under ``--env``."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The one seat. Its harness runs in this process; the default runtime of verifiers is a paid sandbox."""
    episodes: Path | None = None
    """Folder for a log of every inquiry; None writes none."""


class InquiryVerifiersEnv(vf.Env[InquiryEnvConfig]):
    """An inquiry, played by the seat ``player``."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Play one inquiry, and record its scores; record none without a conclusion."""
        data = task.data
        assert isinstance(data, InquiryTaskData)
        agent = {"name": "verifiers", "model": agents.player.ctx.model}
        session = InquirySession(data.inquiry, embedder=data.embedder, folder=self.config.episodes, agent=agent)
        try:
            await in_step_thread(session.begin)
            async with agents.player.interaction(task) as player:
                while not session.over and not (segment := await player.turn(session.observation)).terminated:
                    # The text as it was said: `last_reply` has no white space at its ends.
                    reply = _text(segment.messages[-1])[:MAX_REPLY]
                    await in_step_thread(session.move, read_move(reply))
        finally:
            session.close()
        if (score := session.score()) is not None:
            scores = asdict(score)
            player.trace.record_reward("conclusion", scores.pop("conclusion"))
            player.trace.record_metrics(scores)
            player.trace.info["inquitree"] = {"key": data.name, "fingerprint": session.episode.fingerprint}


class InquiryHarnessConfig(vf.HarnessConfig):
    """Settings under ``--env.player.harness``."""

    context: int = CONTEXT
    """Limit of a request in estimated tokens; see `LLMAgent`."""


class InquiryHarness(vf.Harness[InquiryHarnessConfig]):
    """`LLMAgent` as a harness: one conversation per inquiry, with one correction of a malformed reply."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *arguments: Any, **more: Any) -> InquiryHarnessSession:
        """Start a conversation."""
        return InquiryHarnessSession(self, *arguments, **more)

    async def launch(self, *arguments: Any, **more: Any) -> vf.ProgramResult:
        """Raise, since `InquiryHarnessSession` takes all turns.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("the harness of inquitree plays through its session")


class InquiryHarnessSession(vf.HarnessSession):
    """One inquiry's conversation, over one HTTP client, which takes 30 ms to make."""

    def __init__(self, harness: InquiryHarness, *arguments: Any, **more: Any) -> None:
        """See `HarnessSession`."""
        super().__init__(harness, *arguments, **more)
        self._chat = _EndpointChat(self)
        self._agent = LLMAgent(self._chat, context=harness.config.context)
        self._agent.reset(0)

    async def _run(self, messages: vf.Messages | None) -> vf.ProgramResult:
        """Ask for one move. The environment reads it from the trace."""
        observation = "\n\n".join(map(_text, messages or ()))
        await self._agent.decide(observation, {"turn": self.trace.num_turns})
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def close(self) -> None:
        """Close the client."""
        await super().close()
        await self._chat.client.aclose()


class _EndpointChat:
    """The model behind the endpoint of a rollout, which records every request and reply in the trace."""

    def __init__(self, session: InquiryHarnessSession) -> None:
        self._session = session
        self.client = httpx.AsyncClient(headers={"Authorization": f"Bearer {session.secret}"}, timeout=None)

    @property
    def config(self) -> dict[str, Any]:
        return {"model": self._session.ctx.model}

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        prompt = self._session.data.system_prompt
        head = [messages[0]] if prompt is None else [system(prompt)]  # a run may replace the system prompt
        body = {**self.config, "messages": [*head, *messages[1:]]}
        response = await self.client.post(f"{self._session.endpoint}/chat/completions", json=body)
        response.raise_for_status()
        (choice,) = response.json()["choices"]
        text = choice["message"].get("content") or ""
        return Completion(text[:MAX_REPLY], choice.get("finish_reason") or "", {}, None)


def _text(message: vf.Message) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or () if isinstance(part, vf.TextContentPart))
