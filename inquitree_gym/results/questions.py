"""Series of questions to a chat model, with every answer stored before it is used and none paid for twice."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from inquitree_gym.errors import BudgetError, LogError, OptionError, ServiceError
from inquitree_gym.llm import Chat, Completion, Message, Usage
from inquitree_gym.llm.chat import all_results, complete_with_text
from inquitree_gym.log import JsonlWriter, has_header
from inquitree_gym.log.jsonl import JsonlRecord, file_stem, read_records, settings_digest
from inquitree_gym.trees.fields import CANARY

T = TypeVar("T")

ANSWERS_VERSION = 1
Key = tuple[str, ...]
"""Identity of a question across runs and releases."""


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """One question with the key of its stored answer."""

    key: Key
    messages: list[Message]
    seed: int = 0


class AnswerFileHeader(JsonlRecord):
    """First line of an answer file."""

    kind: Literal["asked"] = "asked"
    answers_version: int = ANSWERS_VERSION
    canary: str = CANARY
    purpose: str
    """Kind of questions, in one word."""
    config: dict[str, Any]
    """Settings that determine the answers, apart from the questions."""


class StoredAnswer(JsonlRecord):
    """One answer: its key and the fields of `Completion`."""

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


@dataclass(frozen=True, slots=True)
class AskingResult:
    """Outcome of a series of questions."""

    answered: int
    """Questions answered now."""
    found: int
    """Questions answered before."""
    failed: tuple[str, ...]
    """Error messages of the unanswered questions. Asking again may help."""
    left: str
    """The cap that ended the series early. Empty if none did."""
    paid: Usage


class AnswerFile(JsonlWriter):
    """Answers of one model to one kind of questions. A context manager that holds the file's lock."""

    def __init__(self, folder: str | os.PathLike[str], purpose: str, config: Mapping[str, Any]) -> None:
        """Open or create the file for this purpose and configuration. Raise `LogError` if it is damaged or in use."""
        header = AnswerFileHeader(purpose=purpose, config=json.loads(json.dumps(dict(config))))
        model = file_stem(str(header.config.get("chat", {}).get("model", "")))
        file = Path(folder, f"{purpose}-{model}-{settings_digest(header.config)}.jsonl")
        super().__init__(file, resume=True, header=header)
        try:
            self.found = read_answers(file)[1]
        except LogError:
            self.close()
            raise

    def add(self, key: Key, completion: Completion) -> None:
        """Append an answer. Raise `LogError` if the file cannot be written."""
        answer = StoredAnswer(key=key, **asdict(completion))
        self.write(answer)
        self.found[key] = answer


def read_answers(file: Path) -> tuple[dict[str, Any], dict[Key, StoredAnswer]]:
    """Return the configuration and the answers of an answer file, both empty if its first line is torn."""
    if not has_header(file):
        return {}, {}
    header, answers = read_records(
        file, AnswerFileHeader, StoredAnswer, remedy="restore the file, or remove that line to ask again"
    )
    return header.config, {answer.key: answer for answer in answers}


def repeated(key: Key, messages: list[Message], repeats: int) -> list[ModelQuestion]:
    """Return a question several times, numbered by seed and key. Raise `OptionError` for ``repeats`` below 1."""
    if repeats < 1:
        raise OptionError(f"repeats must be at least 1, got {repeats}")
    return [ModelQuestion((*key, str(repeat)), messages, repeat) for repeat in range(repeats)]


async def ask_questions(
    chat: Chat, questions: Sequence[ModelQuestion], file: AnswerFile, max_concurrency: int, progress: Callable[[], None]
) -> AskingResult:
    """Ask every question without a stored answer, at most ``max_concurrency`` at a time.

    Args:
        chat: the model. A `BudgetedChat` if a cap is to end the series.
        questions: each with a distinct key.
        file: stores each answer as soon as it arrives.
        max_concurrency: at least 1.
        progress: called once per question that is answered, was answered before, or failed.

    Raises:
        OptionError: ``max_concurrency`` is below 1.
        ServiceError: the service answers no question at all. Answers received until then are stored.
        LogError: an answer cannot be written.
    """
    if max_concurrency < 1:
        raise OptionError(f"max_concurrency must be at least 1, got {max_concurrency}")
    room = asyncio.Semaphore(max_concurrency)
    refusals: list[ServiceError] = []

    paid: list[Completion] = []

    async def ask(question: ModelQuestion) -> Completion | ServiceError | BudgetError | None:
        async with room:
            if refusals:
                return None
            try:
                completion = await complete_with_text(chat, question.messages, seed=question.seed, keep=paid.append)
            except BudgetError as error:
                return error
            except ServiceError as error:
                if error.concerns_all:
                    refusals.append(error)
                    return None
                progress()
                return error
            file.add(question.key, completion)
            progress()
            return completion

    missing = [question for question in questions if question.key not in file.found]
    for _ in range(len(questions) - len(missing)):
        progress()
    outcomes = await all_results(ask(question) for question in missing)
    if refusals:
        raise refusals[0]
    return _result(outcomes, len(questions) - len(missing), sum(map(Usage.of, paid), Usage()))


def _result(
    outcomes: Sequence[Completion | ServiceError | BudgetError | None], found: int, paid: Usage
) -> AskingResult:
    return AskingResult(
        answered=sum(isinstance(outcome, Completion) for outcome in outcomes),
        found=found,
        failed=tuple(str(outcome) for outcome in outcomes if isinstance(outcome, ServiceError)),
        left=next((str(outcome) for outcome in outcomes if isinstance(outcome, BudgetError)), ""),
        paid=paid,
    )
