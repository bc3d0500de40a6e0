"""Questions to a real server on loopback: answers on disk, none asked twice, faults told, caps held, kills survived."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inquitree_gym.errors import LogError, OptionError, ServiceError
from inquitree_gym.llm import Budget, BudgetedChat, Chat, ChatModel, Completion
from inquitree_gym.results.questions import AnswerFile, AskingResult, ModelQuestion, ask_questions
from inquitree_gym.trees import CANARY
from tests.servers import FILTERED, KEY, PASSING, USED_UP, Hourglass, Service, failed, said

pytestmark = pytest.mark.e2e

CONFIG = {"chat": {"model": "openai/some model"}, "prompts": "00"}


def chat_of(service: Service, **settings) -> ChatModel:
    return ChatModel("gpt-4o-mini", base_url=service.address, clock=Hourglass(), **settings)


def questions(number: int) -> list[ModelQuestion]:
    return [ModelQuestion((f"q{i}", "0"), [{"role": "user", "content": f"question {i}"}], i) for i in range(number)]


def ask(chat: Chat, folder: Path, number: int, max_concurrency: int = 4) -> AskingResult:
    told = []
    with AnswerFile(folder, "quiz", CONFIG) as file:
        asked = asyncio.run(ask_questions(chat, questions(number), file, max_concurrency, lambda: told.append(1)))
    assert len(told) == asked.answered + asked.found + len(asked.failed)
    return asked


def answers(folder: Path) -> dict:
    with AnswerFile(folder, "quiz", CONFIG) as file:
        return dict(file.found)


def test_every_question_is_asked_once_and_what_was_answered_is_not_asked_again(service: Service, tmp_path: Path):
    service.reply = lambda body: f"to {body['messages'][0]['content']}"
    first = ask(chat_of(service), tmp_path, 5)
    assert (first.answered, first.found, first.failed, first.left) == (5, 0, (), "")
    assert (first.paid.replies, first.paid.tokens) == (5, 600)
    again = ask(chat_of(service), tmp_path, 8)
    assert (again.answered, again.found) == (3, 5)
    assert sorted(body["messages"][0]["content"] for body in (r.body for r in service.requests)) == [
        f"question {i}" for i in range(8)
    ]
    assert {request.body["seed"] for request in service.requests} == set(range(8))
    found = answers(tmp_path)
    assert found["q3", "0"].text == "to question 3"
    assert found["q3", "0"].tokens == {"prompt": 100, "completion": 20}


def test_an_answer_of_reasoning_alone_is_asked_for_again_and_paid_for(service: Service, tmp_path: Path):
    service.planned.extend([USED_UP, None, USED_UP, USED_UP])
    found = ask(chat_of(service, max_tokens=50), tmp_path, 2, max_concurrency=1)
    assert (found.answered, len(found.failed), found.paid.replies, found.paid.reasoning_tokens) == (1, 1, 4, 1500)
    assert "used up its 50 tokens" in found.failed[0]
    assert ask(chat_of(service, max_tokens=500), tmp_path, 2).answered == 1


def test_the_file_says_who_was_asked_and_is_named_after_it(service: Service, tmp_path: Path):
    ask(chat_of(service), tmp_path, 1)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("quiz-openai-some-model-")
    head, answer = map(json.loads, file.read_text().splitlines())
    assert (head["kind"], head["purpose"], head["config"], head["canary"]) == ("asked", "quiz", CONFIG, CANARY)
    assert (answer["kind"], answer["key"]) == ("answer", ["q0", "0"])
    assert KEY not in file.read_text()
    with AnswerFile(tmp_path, "quiz", {**CONFIG, "prompts": "01"}) as other:
        assert other.path != file
        assert other.found == {}


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_so_many_are_asked_at_the_same_time_and_no_more(max_concurrency: int, tmp_path: Path):
    now: list[int] = []
    most = [0]

    class Counting:
        config = CONFIG

        async def complete(self, messages, *, seed=None) -> Completion:
            now.append(1)
            most[0] = max(most[0], len(now))
            await asyncio.sleep(0)
            now.pop()
            return Completion("yes", "stop", {}, None)

    asked = ask(Counting(), tmp_path, 9, max_concurrency)
    assert most[0] == max_concurrency
    assert (asked.paid.unpriced, asked.paid.uncounted) == (9, 9)


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_tried_again_and_then_leaves_one_question(fault: str, service: Service, tmp_path: Path):
    service.planned.extend([PASSING[fault]] * 3)
    asked = ask(chat_of(service, retries=1), tmp_path, 3, max_concurrency=1)
    # Two tries for the first question, one more for the second, which is then answered.
    assert (asked.answered, len(asked.failed), asked.left) == (2, 1, "")
    assert "was asked 2 times and gave no answer" in asked.failed[0]
    assert ask(chat_of(service), tmp_path, 3).answered == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_said_of_one_question_leaves_that_one(status: int, service: Service, tmp_path: Path):
    service.planned.append(failed(status, "not this one"))
    asked = ask(chat_of(service), tmp_path, 3, max_concurrency=1)
    assert (asked.answered, len(asked.failed)) == (2, 1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_is_said_of_every_question_ends_the_asking(status: int, service: Service, tmp_path: Path):
    service.planned.extend([said("one"), failed(status, "you may not")])
    with pytest.raises(ServiceError, match="you may not"):
        ask(chat_of(service), tmp_path, 5, max_concurrency=1)
    assert len(service.requests) == 2
    assert len(answers(tmp_path)) == 1


def test_a_filtered_answer_and_any_string_are_answers(service: Service, tmp_path: Path):
    service.planned.extend([FILTERED, said("half a pair \ud83d and a \u2028 line\r\nend")])
    asked = ask(chat_of(service), tmp_path, 2, max_concurrency=1)
    assert asked.answered == 2
    assert answers(tmp_path)["q0", "0"].finish_reason == "content_filter"
    assert answers(tmp_path)["q1", "0"].text.startswith("half a pair \ud83d")


def test_a_cap_ends_the_asking_and_a_higher_one_goes_on(service: Service, tmp_path: Path):
    asked = ask(BudgetedChat(chat_of(service), Budget(max_total_tokens=250)), tmp_path, 6, max_concurrency=1)
    assert (asked.answered, asked.failed) == (3, ())
    assert "the cap of 250 tokens is reached" in asked.left
    assert ask(BudgetedChat(chat_of(service), Budget(max_total_tokens=10**6)), tmp_path, 6).found == 3
    assert len(service.requests) == 6


def test_less_than_one_question_at_a_time_is_refused(service: Service, tmp_path: Path):
    with pytest.raises(OptionError, match="max_concurrency must be at least 1, got 0"):
        ask(chat_of(service), tmp_path, 1, max_concurrency=0)


# Files


def test_a_last_line_cut_off_in_the_middle_is_asked_again(service: Service, tmp_path: Path):
    ask(chat_of(service), tmp_path, 3, max_concurrency=1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    again = ask(chat_of(service), tmp_path, 3)
    assert (again.answered, again.found) == (1, 2)


def test_a_file_torn_in_its_first_line_begins_anew(service: Service, tmp_path: Path):
    ask(chat_of(service), tmp_path, 1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:30])
    assert ask(chat_of(service), tmp_path, 2).answered == 2


@pytest.mark.parametrize(("line", "content"), [(1, b"{}"), (2, b"no JSON"), (3, b'{"kind":"answer"}')])
def test_a_damaged_line_is_named(line: int, content: bytes, service: Service, tmp_path: Path):
    ask(chat_of(service), tmp_path, 3)
    (file,) = tmp_path.iterdir()
    lines = file.read_bytes().splitlines()
    lines[line - 1] = content
    file.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(LogError, match=rf"line {line}: .*remove that line to ask again"):
        answers(tmp_path)


def test_two_at_the_same_file_are_refused(service: Service, tmp_path: Path):
    with AnswerFile(tmp_path, "quiz", CONFIG), pytest.raises(LogError, match="another process is writing"):
        AnswerFile(tmp_path, "quiz", CONFIG)


def test_a_folder_that_cannot_be_written_is_told(service: Service, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogError, match="cannot write"):
        AnswerFile(tmp_path / "file", "quiz", CONFIG)


def test_whoever_is_killed_loses_nothing_that_was_answered(service: Service, tmp_path: Path):
    """The server kills the process with the fifth request; what it had answered before is not asked again."""
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from tests.results.test_questions import CONFIG, questions\n"
        "from inquitree_gym.llm import ChatModel\n"
        "from inquitree_gym.results.questions import AnswerFile, ask_questions\n"
        "chat = ChatModel('gpt-4o-mini', base_url=sys.argv[1])\n"
        "with AnswerFile(sys.argv[2], 'quiz', CONFIG) as file:\n"
        "    asyncio.run(ask_questions(chat, questions(9), file, 1, lambda: None))\n"
    )
    process: list[subprocess.Popen] = []

    def reply(body) -> str:
        if len(service.requests) == 5:
            os.kill(process[0].pid, signal.SIGKILL)
        return "an answer"

    service.reply = reply
    root = Path(__file__).parents[2]
    process.append(subprocess.Popen([sys.executable, "-c", script, service.address, str(tmp_path)], cwd=root))
    assert process[0].wait() == -signal.SIGKILL
    assert len(answers(tmp_path)) == 4
    service.begin()
    again = ask(chat_of(service), tmp_path, 9)
    assert (again.answered, again.found, len(service.requests)) == (5, 4, 5)
