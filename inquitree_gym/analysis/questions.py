"""Questions put to a chat model one by one: every answer is on disk before it is used, and none is paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import BudgetError, LogError, OptionError, ServiceError
from inquitree_gym.llm import Chat, Completion, Message, Paid
from inquitree_gym.log import JsonlWriter
from inquitree_gym.trees.schema import CANARY

ANSWERS_VERSION = 1
Key = tuple[str, ...]
"""What a question is about, in words that stay the same."""


class Question(NamedTuple):
    """What is asked, and under which name the answer is kept."""

    key: Key
    messages: list[Message]
    seed: int = 0


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AskedLine(_Line):
    """The first line: who was asked, and how."""

    kind: Literal["asked"] = "asked"
    answers_version: int = ANSWERS_VERSION
    canary: str = CANARY
    purpose: str
    """One word."""
    config: dict[str, Any]
    """What decides the answers beside the questions."""


class Answer(_Line):
    """One answer."""

    kind: Literal["answer"] = "answer"
    key: Key
    text: str
    finish_reason: str
    tokens: dict[str, int]
    cost: float | None
    seconds: float
    retries: int
    cut: int
    cached: bool
    """The fields of `chat.Completion`."""


class Asked(NamedTuple):
    """What asking brought."""

    answered: int
    """Questions answered now."""
    found: int
    """Questions that had been answered before."""
    failed: tuple[str, ...]
    """Why questions stayed without an answer, one message each; asking again may help."""
    left: str
    """Why the rest was not asked: the cap that was reached; empty where everything was."""
    paid: Paid


class AnswerFile:
    """The answers of one model to one kind of questions, to read and to add to."""

    def __init__(self, folder: str | os.PathLike[str], purpose: str, config: Mapping[str, Any]) -> None:
        """Open the file for this purpose and these settings in ``folder``, a new one where there is none yet.

        Raises:
            LogError: the file is damaged, cannot be written, or another process is writing it.
        """
        line = AskedLine(purpose=purpose, config=json.loads(json.dumps(dict(config))))
        self.path = Path(folder, _file_name(line))
        self._writer = JsonlWriter(self.path, resume=True)
        try:
            if not self.path.stat().st_size:
                self._write(line)
            _, self.found = read_answers(self.path)
        except LogError:
            self._writer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()

    def add(self, key: Key, completion: Completion) -> None:
        """Append an answer.

        Raises:
            LogError: it cannot be written.
        """
        answer = Answer(key=key, **completion._asdict())
        self._write(answer)
        self.found[key] = answer

    def _write(self, line: _Line) -> None:
        self._writer.write(cast(Any, line))


async def ask_all(
    chat: Chat, questions: Sequence[Question], file: AnswerFile, max_concurrency: int, progress: Callable[[], None]
) -> Asked:
    """Ask what ``file`` has no answer to yet, ``max_concurrency`` questions at the same time.

    Args:
        chat: the model; a `BudgetedChat` where there is a cap, at which no more is asked.
        questions: each with a key of its own.
        file: takes the answers, each as soon as it is there.
        max_concurrency: at least 1.
        progress: told of every question once it is done with, or was answered before.

    Raises:
        OptionError: ``max_concurrency`` is below 1.
        ServiceError: the service will answer no question; those under way were still taken down.
        LogError: an answer could not be written.
    """
    if max_concurrency < 1:
        raise OptionError(f"at least 1 question is asked at a time, not {max_concurrency}")
    asking = _Asking(chat, file, max_concurrency, progress)
    missing = [question for question in questions if question.key not in file.found]
    for _ in range(len(questions) - len(missing)):
        progress()
    try:
        async with asyncio.TaskGroup() as group:
            for question in missing:
                group.create_task(asking.ask(question))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if asking.refused is not None:
        raise asking.refused
    return Asked(asking.answered, len(questions) - len(missing), tuple(asking.failed), asking.left, asking.paid)


class _Asking:
    """What the questions of one call share."""

    def __init__(self, chat: Chat, file: AnswerFile, max_concurrency: int, progress: Callable[[], None]) -> None:
        self._chat = chat
        self._file = file
        self._room = asyncio.Semaphore(max_concurrency)
        self._progress = progress
        self.answered = 0
        self.failed: list[str] = []
        self.left = ""
        self.refused: ServiceError | None = None
        self.paid = Paid()

    async def ask(self, question: Question) -> None:
        async with self._room:
            if self.refused is not None:
                return
            try:
                completion = await self._chat.complete(question.messages, seed=question.seed)
            except BudgetError as error:
                self.left = str(error)
                return
            except ServiceError as error:
                self._note(error)
                return
            self._file.add(question.key, completion)
            self.answered += 1
            self.paid += Paid.of(completion)
            self._progress()

    def _note(self, error: ServiceError) -> None:
        if error.concerns_all:
            self.refused = error
        else:
            self.failed.append(str(error))
            self._progress()


def _file_name(line: AskedLine) -> str:
    """Name the file after purpose and model, and after all of the settings by their digest."""
    settings = hashlib.sha256(json.dumps(line.config, sort_keys=True).encode()).hexdigest()[:8]
    model = re.sub(r"[^A-Za-z0-9.]+", "-", str(line.config.get("chat", {}).get("model", ""))).strip("-.")[:80]
    return f"{line.purpose}-{model}-{settings}.jsonl"


def read_answers(file: Path) -> tuple[dict[str, Any], dict[Key, Answer]]:
    """Return the settings of a file of answers, and its answers; a torn last line is left out.

    Raises:
        LogError: the file is damaged.
    """
    config: dict[str, Any] = {}
    found = {}
    *lines, _torn = file.read_bytes().split(b"\n")
    for number, content in enumerate(lines, 1):
        try:
            # Not pydantic's own JSON reader: it refuses the lone surrogates that a model may write.
            document = json.loads(content)
            if number == 1:
                config = AskedLine.model_validate(document).config
            else:
                answer = Answer.model_validate(document)
                found[answer.key] = answer
        except ValueError as error:  # pydantic's ValidationError is one, too
            said = str(error).splitlines()[0]
            raise LogError(
                f"'{file}', line {number}: {said}; bring the file back, or remove that line and have it asked again"
            ) from error
    return config, found
