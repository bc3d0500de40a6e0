"""Judges of every kind: ahead of a step or within it, failing, stored beside the logs, and damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import OptionError, RewardError, ServiceError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.registry import load_judge
from inquitree_gym.llm import run_sync
from tests.contract.command_line import begin, inquitree, logs
from tests.contract.conftest import KindCase
from tests.projection.tasks import WORDS
from tests.servers import Service


class AllRight:
    """Finds every conclusion item right, for inquiries, which have no judge without a service."""

    async def judge(self, task: Any, text: str, /) -> Judgement[Any]:
        return Judgement(tuple(Verdict(1.0, "so it is") for _ in task.conclusions))


class Slow:
    """Answers as a judge in this process, as a service would; fails where it is told to."""

    name, config = "slow", {"version": 2}

    def __init__(self, case: KindCase) -> None:
        own = {"inquiry": AllRight(), "projection": WORDS}
        self._judge = own.get(case.name) or load_judge("local", task_kind=case.name)
        self.asked: list[str] = []
        self.fails = False

    async def judge(self, task: Any, text: str, /) -> Judgement[Any]:
        self.asked.append(text)
        if self.fails:
            raise ServiceError("the service is down", status=503, transient=True)
        return await self._judge.judge(task, text)


def judged_env(case: KindCase, judge: Any) -> Any:
    env = case.make_env(case.task, judge=judge)
    env.reset(seed=1)
    return env


def test_a_judge_asked_ahead_gives_what_it_gives_within_the_step(kind_case: KindCase):
    ahead, within = Slow(kind_case), Slow(kind_case)
    one, other = judged_env(kind_case, ahead), judged_env(kind_case, within)
    for action in kind_case.actions:
        asking = one.records.ask_ahead(action)
        if asking is not None:
            run_sync(asking)
        before = len(ahead.asked)
        assert one.step(action) == other.step(action)
        assert len(ahead.asked) == before
    assert ahead.asked == within.asked != []
    assert dict(one.records.judge()) == {"name": "slow", "version": 2}


def test_a_failing_judge_leaves_the_step_untaken(kind_case: KindCase):
    judge = Slow(kind_case)
    env, whole = judged_env(kind_case, judge), judged_env(kind_case, Slow(kind_case))
    for action in kind_case.actions:
        judge.fails, before = True, len(judge.asked)
        expected = whole.step(action)
        try:
            found = env.step(action)
        except RewardError:
            judge.fails = False
            found = env.step(action)
        assert found == expected
        assert len(judge.asked) - before in (0, 2)
    assert judge.asked


@pytest.mark.parametrize("name", ["nobody", "llm:", "locl", 3])
def test_an_unknown_judge_is_refused(kind_case: KindCase, name: Any):
    with pytest.raises(OptionError, match=r"known: (local|nli)|judge must be a name \((local|nli)"):
        load_judge(name, task_kind=kind_case.name)


def skip_without_local_judge(case: KindCase) -> None:
    if "local" not in case.kind.judging.judges:
        pytest.skip("has no judge without a service; tests/cli/test_judges.py asks one")


def test_judgements_are_stored_once(kind_case: KindCase, tmp_path: Path):
    skip_without_local_judge(kind_case)
    run = begin(kind_case, tmp_path)
    (report,) = inquitree("judge", run.folder, "--json").json
    assert report["kind"] == kind_case.name
    (judge,) = report["judges"]
    assert judge["judged"] > 0 == judge["unscored"]
    (stored,) = (run.folder / "judgements").iterdir()
    before = stored.read_bytes()
    (again,) = inquitree("judge", run.folder, "--json").json[0]["judges"]
    assert (again["judged"], again["found"], again["faults"]) == (0, judge["judged"], [])
    assert stored.read_bytes() == before


OUT_OF_RANGE: dict[str, Callable[[Any], object]] = {
    "inquiry": lambda payload: payload["verdicts"][0].update(score=1.5),
    "projection": lambda payload: payload.update(f1=-0.5),
    "exploration": lambda payload: payload["grade"].update(verdict="perhaps"),
    "toy": lambda payload: payload.update(words=3),
}
OF_ANOTHER_TASK: dict[str, Callable[[Any], object]] = {
    "inquiry": lambda payload: payload["verdicts"][0].update(item="c9"),
    "projection": lambda payload: [payload[name].pop() for name in ("analogous", "pair_ratings", "reasons")],
    "exploration": lambda payload: payload["grade"].update(kind="T2"),
    "toy": lambda payload: payload.update(words=["gold"]),
}


def test_damaged_judgements_are_named_and_left_out_by_every_verb(kind_case: KindCase, tmp_path: Path):
    skip_without_local_judge(kind_case)
    run = begin(kind_case, tmp_path)
    inquitree("judge", run.folder)
    (stored,) = (run.folder / "judgements").iterdir()
    header, *records = map(json.loads, stored.read_text().splitlines())
    OUT_OF_RANGE[kind_case.name](records[0]["payload"])
    OF_ANOTHER_TASK[kind_case.name](records[-1]["payload"])
    lines = [json.dumps(header), *map(json.dumps, records), "no judgement"]
    stored.write_text("".join(f"{line}\n" for line in lines))
    told = (f"{stored.name}', line 2: ", f"{stored.name}', line {len(lines)}: not JSON", "is damaged: ")
    for verb in ("score", "report", "view"):
        done = inquitree(verb, run.folder, "--judge", "local")
        assert done.status == 0, done.err
        assert [done.said.count(part) for part in told] == [1, 1, 1], (verb, done.said)
    assert len(inquitree("score", run.folder, "--judge", "local", "--json").json) == len(run.logs) - 1
    done = inquitree("judge", run.folder)
    assert (done.status, [done.said.count(part) for part in told]) == (0, [1, 1, 1]), done.said
    assert "is judged again" in done.said
    assert len(inquitree("score", run.folder, "--judge", "local", "--json").json) == len(run.logs)
    assert "is damaged: " not in inquitree("judge", run.folder).said


@pytest.mark.e2e
def test_a_model_plays_and_a_study_names_its_judge(kind_case: KindCase, service: Service, tmp_path: Path):
    service.reply = lambda body: "THOUGHT: It may be so.\nACTION: draw conclusion"
    run = begin(kind_case, tmp_path)
    flags = [*run.flags("llm", seeds=1, folder=tmp_path / "asked"), "--model", "gpt-4o-mini"]
    done = inquitree(*flags, "--base-url", service.address, "--json")
    assert done.json["played"] >= 1
    assert len(service.requests) > 0
    before = len(service.requests)
    assert inquitree(*flags, "--base-url", service.address, "--json").json["played"] == 0
    assert len(service.requests) == before
    shutil.copytree(tmp_path / "asked", tmp_path / "again")
    torn = sorted((tmp_path / "again" / "episodes").iterdir())[0]
    torn.write_bytes(torn.read_bytes()[:-9])
    flags[flags.index(tmp_path / "asked")] = tmp_path / "again"
    assert inquitree(*flags, "--base-url", service.address, "--json").json["played"] == 1
    assert len(service.requests) == before, "every reply of the torn log is paid for once"
    assert logs(tmp_path / "again").keys() == logs(tmp_path / "asked").keys()
