"""verifiers and prime-rl: tasks, an environment with one seat, and a harness that runs in this process.

The package in ``environments/inquitree`` makes them the plugin ``inquitree`` (extra ``verifiers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import httpx
from pydantic import create_model, model_validator

from inquitree_gym.baselines.conversation import system
from inquitree_gym.baselines.llm import CONTEXT
from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.integrations.messages import plain_writer
from inquitree_gym.integrations.session import EpisodeSession, check_tasks, play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.kinds import DEFAULT_KIND, kind, kinds_with
from inquitree_gym.llm import MAX_REPLY, Completion, Message
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.runs.study import ALL

try:
    import verifiers.v1 as vf
except ModuleNotFoundError:
    require("verifiers", "verifiers")
    raise

PLAYER = "llm"
"""Agent behind the harness."""


Value = str | int | float | bool | list[Any] | dict[str, Any] | None
_FIELDS: dict[str, Any] = {
    name: (Value, None)
    for of_kind in kinds_with("settings")
    for name in (*of_kind.settings.model_fields, *of_kind.settings.hidden_rules)
}
"""Settings of all kinds by name. One that is None has the default of its kind."""
_KindSettings: Any = create_model("_KindSettings", __base__=vf.TasksetConfig, **_FIELDS)


class VerifiersTasksetConfig(_KindSettings):
    """Settings under ``--env.taskset``, with those of every kind. See `make_tasks`."""

    papers: str | list[str] = ALL
    env: str = DEFAULT_KIND
    seeds: int | list[int] = 5

    @property
    def tasks(self) -> tuple[EpisodeTask, ...]:
        """The tasks of these settings."""
        settings = {name: getattr(self, name) for name in _FIELDS if getattr(self, name) is not None}
        return make_tasks(self.papers, env=self.env, seeds=self.seeds, **settings)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse bad settings here, so that verifiers reports them as faults of the configuration."""
        try:
            check_tasks(self.tasks)
        except InquiTreeError as error:
            raise ValueError(str(error)) from error
        return self


class VerifiersTaskData(vf.TaskData):
    """A task as it travels to another process."""

    kind: str
    task: str
    version: int
    seed: int
    cell: dict[str, Any]
    settings: dict[str, Any]

    @property
    def episode(self) -> EpisodeTask:
        """The task, as sessions take it."""
        return EpisodeTask(self.kind, self.task, self.version, self.seed, self.cell, self.settings)


class VerifiersTask(vf.Task[VerifiersTaskData]):
    """One episode, named by the key of its `EpisodeTask`."""

    @property
    def key(self) -> str:
        """Name, such as ``paper12@1/s0``."""
        return str(self.data.episode.key)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Let the oracle play. Return whether it earned a reward."""
        episode = await in_step_thread(lambda: play_task(self.data.episode))
        return episode.footer is not None and episode.footer.episode_return > 0


class VerifiersTaskset(vf.Taskset[VerifiersTask, VerifiersTasksetConfig]):
    """Papers × cells × seeds. A task has no prompt, because the environment opens the conversation."""

    def load(self) -> Iterator[VerifiersTask]:
        """Yield the tasks."""
        for task in self.config.tasks:
            data = VerifiersTaskData(
                name=task.key,
                system_prompt=plain_writer(task.kind, task.parsed.prompts).system_text,
                kind=task.kind,
                task=task.task,
                version=task.version,
                seed=task.seed,
                cell=dict(task.cell),
                settings=dict(task.settings),
            )
            yield VerifiersTask(data, self.config.task)


class VerifiersEnvConfig(vf.EnvConfig):
    """Settings under ``--env``."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The one seat. Its harness runs in this process, since the default runtime of verifiers is a paid sandbox."""
    episodes: Path | None = None
    """Folder for a log of every episode. None writes none."""


class VerifiersEnv(vf.Env[VerifiersEnvConfig]):
    """An episode, played by the seat ``player``."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Play one episode, and record its scores once it is concluded. Raise `OptionError` for a foreign task."""
        data = task.data
        if not isinstance(data, VerifiersTaskData):
            raise OptionError(f"the task must be one of VerifiersTaskset, got {type(task).__name__}")
        agent = {"name": "verifiers", "model": agents.player.ctx.model}
        session = EpisodeSession(data.episode, folder=self.config.episodes, agent=agent)
        writer = plain_writer(data.kind, session.task.parsed.prompts)
        try:
            await in_step_thread(session.begin)
            async with agents.player.interaction(task) as player:
                while not session.over:
                    segment = await player.turn(writer.told(session.observation, session.info))
                    if segment.terminated:
                        break
                    # The text as it was said: `last_reply` has no white space at its ends.
                    reply = _text(segment.messages[-1])[:MAX_REPLY]
                    await in_step_thread(session.move, writer.move_in(reply))
        finally:
            session.close()
        if (score := session.score()) is not None:
            player.trace.record_reward("reward", score.reward)
            player.trace.record_metrics(score.metrics)
            player.trace.info["inquitree"] = {"key": data.name, "fingerprint": session.episode.fingerprint}


class VerifiersHarnessConfig(vf.HarnessConfig):
    """Settings under ``--env.player.harness``."""

    context: int = CONTEXT
    """Limit of a request in estimated tokens. See `ChatAgent`."""


class VerifiersHarness(vf.Harness[VerifiersHarnessConfig]):
    """The agent `PLAYER` as a harness: one conversation per episode, with one correction of a malformed reply."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *arguments: Any, **more: Any) -> VerifiersHarnessSession:
        """Start a conversation."""
        return VerifiersHarnessSession(self, *arguments, **more)

    async def launch(self, *arguments: Any, **more: Any) -> vf.ProgramResult:
        """Raise `NotImplementedError`, since `VerifiersHarnessSession` takes all turns."""
        raise NotImplementedError("the harness of inquitree plays through its session")


class VerifiersHarnessSession(vf.HarnessSession):
    """One episode's conversation, over one HTTP client, which takes 30 ms to make."""

    def __init__(self, harness: VerifiersHarness, *arguments: Any, **more: Any) -> None:
        super().__init__(harness, *arguments, **more)
        self._chat = _EndpointChat(self)
        self._agent = kind(self.data.kind).play.model_agents[PLAYER](self._chat, context=harness.config.context)
        self._agent.reset(0)

    async def _run(self, messages: vf.Messages | None) -> vf.ProgramResult:
        """Ask for one move, which the environment reads from the trace. It says what the model is told."""
        observation = "\n\n".join(map(_text, messages or ()))
        await self._agent.decide(observation, {"turn": self.trace.num_turns, "state": ""})
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def close(self) -> None:
        """Close the client."""
        await super().close()
        await self._chat.client.aclose()


class _EndpointChat:
    """The model behind the endpoint of a rollout, which records every request and reply in the trace."""

    def __init__(self, session: VerifiersHarnessSession) -> None:
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
        text, refusal = choice["message"].get("content") or "", choice["message"].get("refusal")
        ended = "refusal" if refusal and not text else choice.get("finish_reason") or ""
        return Completion((text or refusal or "")[:MAX_REPLY], ended, {}, None)


def _text(message: vf.Message) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or () if isinstance(part, vf.TextContentPart))
