"""verifiers: our episodes in its environment, its commands, and its server."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import verifiers.v1 as vf
from pydantic import ValidationError
from verifiers.v1.serve import EnvClient, serve_env

from inquitree_gym.inquiry.prompts import AGENT_TEMPLATE_NAMES, inquiry_prompts
from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.integrations.verifiers import VerifiersEnv, VerifiersHarness, VerifiersTaskset
from inquitree_gym.log import read_episode
from inquitree_gym.runner import make_study, run_study
from inquitree_gym.trees import load_tree
from tests.frames import FRAMES, Framed
from tests.servers import REFUSED, Answer, Body, Rote, Service, failed, said

pytestmark = [pytest.mark.weights, pytest.mark.e2e]

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "environments" / "inquitree"
TREES = ("paper2", "paper8")
AT_MOST = 600.0
"""Seconds without an answer after which a process is given up."""
ROTE = Rote(*map(load_tree, TREES))


def forgetful(body: Body) -> str:
    """Plays by heart, but forgets the form now and then, and once again when it is corrected."""
    messages = body["messages"]
    corrected = messages[-1]["content"].startswith("Your answer could not be read")
    if len(messages) % 8 == 4 or (corrected and len(messages) % 16 == 14):
        return "  THOUGHT: no move here,\nonly words.\n"
    return ROTE(body)


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PLUGIN)


def client(service: Service) -> vf.EvalClientConfig:
    return vf.EvalClientConfig(base_url=service.address, api_key_var="OPENAI_API_KEY")


def evaluate(service: Service, taskset: dict[str, Any], **env: Any) -> list[vf.Episode]:
    """Play every task once, at the same time, in this process."""

    async def run() -> list[vf.Episode]:
        config = vf.resolve_env_config({"taskset": {"id": "inquitree", **taskset}, **env})
        made = vf.load_environment(config)
        context = vf.ModelContext(model="m", client=client(service), sampling=vf.Sampling())
        async with made.serving():
            slots = [slot for task in made.taskset for slot in made.slots(task)]
            return await asyncio.gather(*(made.run_slot(slot, context) for slot in slots))

    return asyncio.run(run())


def fingerprints(episodes: list[Any]) -> dict[str, str]:
    """Map the keys of concluded inquiries to their fingerprints."""
    told = [episode.traces[0].info["inquitree"] for episode in episodes]
    return {each["key"]: each["fingerprint"] for each in told}


def run_study_on(service: Service, tasks: tuple[EpisodeTask, ...], folder: Path) -> dict[str, str]:
    """Play the tasks with ``inquitree run``."""
    model = {"model": "openai/m", "base_url": service.address}
    level, seeds = int(tasks[0].options["fake_level"]), len({task.seed for task in tasks})
    trees = tuple(dict.fromkeys(task.task for task in tasks))
    study = make_study(agents=("llm",), models=(model,), trees=trees, fake_level=(level,), seeds=seeds)
    assert run_study(study, folder).is_complete
    played = map(read_episode, sorted((folder / "episodes").iterdir()))
    return {f"{each.header.task.id} {each.header.seed}": each.fingerprint for each in played}


def test_a_model_leaves_the_fingerprints_that_it_leaves_in_a_run(service: Service, tmp_path: Path):
    service.reply = forgetful
    tasks = make_tasks(TREES, seeds=2, fake_level=3)
    played = run_study_on(service, tasks, tmp_path / "run")
    chats = sorted(map(json.dumps, service.chats))
    service.requests.clear()
    taskset = {"papers": list(TREES), "seeds": 2, "fake_level": 3}
    episodes = evaluate(service, taskset, episodes=str(tmp_path / "logs"))
    assert all(episode.ok for episode in episodes)
    assert fingerprints(episodes) == {task.key: played[f"{task.task} {task.seed}"] for task in tasks}
    assert sorted(map(json.dumps, service.chats)) == chats
    assert any("Your answer could not be read" in chat for chat in chats)
    logs = [read_episode(file) for file in (tmp_path / "logs").iterdir()]
    assert {log.fingerprint for log in logs} == set(played.values())
    assert {log.header.agent["model"] for log in logs} == {"m"}
    for episode, task in zip(episodes, tasks, strict=True):
        (trace,) = episode.traces
        (log,) = (log for log in logs if (log.header.task.id, log.header.seed) == (task.task, task.seed))
        assert trace.reward == log.footer.episode_return
        assert trace.rewards.keys() == {"reward"}
        assert trace.metrics.keys() >= {"coverage", "unaided_coverage", "turns", "actions"}
        assert trace.metrics["actions"] == len(log.turns)
        assert episode.task.key == task.key


def test_settings_reach_the_inquiry_and_the_model(service: Service, tmp_path: Path):
    service.reply = ROTE
    (tmp_path / "prompt.txt").write_text("Explore as you like.", encoding="utf-8")
    taskset = {
        "papers": "paper8", "seeds": [7], "fake_level": [2], "max_turns": "3n", "embedder": "hashed-words",
        "rules": {"redo_turn": True}, "system_prompt": tmp_path / "prompt.txt",
    }  # fmt: skip
    (episode,) = evaluate(
        service, taskset, player={"harness": {"id": "inquitree", "context": 1_500}}, episodes=str(tmp_path / "logs")
    )
    (file,) = (tmp_path / "logs").iterdir()
    header = read_episode(file).header
    assert (header.seed, header.setup.embedder.name) == (7, "hashed-words")
    assert [header.rules[name] for name in ("fake_level", "max_turns", "redo_turn")] == [2, "3n", True]
    assert all(chat[0] == {"role": "system", "content": "Explore as you like."} for chat in service.chats)
    assert "left out here" in service.chats[-1][1]["content"]
    assert episode.ok


def test_a_model_that_gives_no_answer_is_an_error_without_a_reward(service: Service):
    service.reply = ROTE
    service.planned.extend([*[None] * 5, *[failed(500)] * 50])
    (episode,) = evaluate(service, {"papers": "paper8", "seeds": 1})
    (trace,) = episode.traces
    assert not episode.ok
    assert trace.last_error.type == "ProviderError"
    assert (trace.rewards, trace.reward, "inquitree" in trace.info) == ({}, 0.0, False)


@pytest.mark.parametrize("answer", [said(None), said("")], ids=["null", "empty"])
def test_an_empty_answer_is_corrected_once_and_then_a_move(service: Service, answer: Answer, tmp_path: Path):
    service.reply = ROTE
    service.planned.extend([answer, answer])
    taskset = {"papers": "paper8", "seeds": 1}
    (episode,) = evaluate(service, taskset, episodes=str(tmp_path / "logs"), player={"max_turns": 4})
    (file,) = (tmp_path / "logs").iterdir()
    assert read_episode(file).actions[0] == ""
    assert episode.traces[0].rewards == {}, "it was cut short"
    assert len(service.requests) == 4


@pytest.mark.parametrize("first", [0, len(FRAMES) // 2])
def test_framed_and_cut_replies_give_the_game_of_a_run(first: int, service: Service, tmp_path: Path):
    service.reply = ROTE
    (task,) = make_tasks("paper8", seeds=1, fake_level=3)
    (clean,) = run_study_on(service, (task,), tmp_path / "clean").values()
    planned = [
        said("Okay, so the user wants … Let me think about", "length"), None, None,
        said("ACTION: How steady is a fly's sense of hea", "length"), None, REFUSED, None,
    ]  # fmt: skip
    service.reply = Framed(ROTE, first)
    service.planned.extend(planned)
    (played,) = run_study_on(service, (task,), tmp_path / "run").values()
    service.planned.extend(planned)
    (episode,) = evaluate(service, {"papers": "paper8", "seeds": 1, "fake_level": 3})
    assert fingerprints([episode]) == {task.key: clean} == {task.key: played}


@pytest.mark.parametrize(
    "planned", [[said("ACTION: How stea", "length")] * 2, [said("provider error", "model_length")]], ids=["cut", "long"]
)
def test_replies_that_cannot_be_played_are_an_error_without_a_reward(service: Service, planned: list[Answer]):
    service.reply = ROTE
    service.planned.extend([None, *planned])
    (episode,) = evaluate(service, {"papers": "paper8", "seeds": 1})
    assert (episode.ok, episode.traces[0].rewards, "inquitree" in episode.traces[0].info) == (False, {}, False)


@pytest.mark.parametrize(
    ("taskset", "message"),
    [({"papers": "/etc/shadow"}, "named by its id"), ({"fake_level": 11}, "fake_level"), ({"melody": 1}, "melody")],
)
def test_bad_settings_are_errors_of_the_configuration(taskset: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        vf.resolve_env_config({"taskset": {"id": "inquitree", **taskset}})


def test_a_task_from_elsewhere_opens_no_file(service: Service):
    async def run() -> vf.Episode:
        made = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "inquitree", "papers": "paper8"}}))
        task = next(iter(made.taskset))
        forged = type(task)(task.data.model_copy(update={"task": "/etc/shadow"}), task.config)
        context = vf.ModelContext(model="m", client=client(service), sampling=vf.Sampling())
        async with made.serving():
            return await made.run_slot(made.slots(forged)[0], context)

    episode = asyncio.run(run())
    assert not episode.ok
    assert "a task is named by its id" in episode.errors[0].message
    assert service.requests == []


# Commands


def command(*arguments: object) -> list[str]:
    name, *others = map(str, arguments)
    return [str(Path(sys.executable).with_name(name)), *others]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, PLUGIN)))}


def run(*arguments: object) -> None:
    """Run a command to its end."""
    done = subprocess.run(command(*arguments), env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def eval_command(service: Service, folder: Path, *more: object) -> list[str]:
    return command(
        "vf-eval", "inquitree", "--env.taskset.papers", "paper8", "--env.taskset.seeds", 2, "-m", "m",
        "--client.base-url", service.address, "--client.api-key-var", "OPENAI_API_KEY",
        "--no-push", "--no-rich", "-o", folder, "--run.name", "here", *more,
    )  # fmt: skip


def saved(folder: Path) -> list[vf.WireEpisode]:
    lines = (folder / "here" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    return [vf.WireEpisode.model_validate_json(line) for line in lines]


def test_a_killed_evaluation_resumes_to_the_same_fingerprints(service: Service, tmp_path: Path):
    service.reply = ROTE
    reached = threading.Event()

    def hold() -> Answer:
        reached.set()
        return said("THOUGHT: too late.\nACTION: nothing")._replace(held=True)

    service.planned.extend([*[None] * 20, hold, hold])
    started = subprocess.Popen(
        eval_command(service, tmp_path, "-c", 1), env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert reached.wait(AT_MOST)
    finally:
        started.kill()
        started.wait()
    service.release()
    service.planned.clear()
    kept = [episode.ok for episode in saved(tmp_path)]
    assert kept == [True]
    config = tmp_path / "here" / "configs" / "resolved" / "eval.json"
    run("vf-eval", "@", config, "--resume")
    episodes = saved(tmp_path)
    assert [episode.ok for episode in episodes] == [True, True]
    tasks = make_tasks("paper8", seeds=2)
    service.begin(ROTE)
    played = run_study_on(service, tasks, tmp_path / "run")
    assert fingerprints(episodes) == {task.key: played[f"{task.task} {task.seed}"] for task in tasks}


def test_the_oracle_validates_the_tasks(tmp_path: Path):
    arguments = ("--taskset.papers", "paper2,paper8", "--taskset.seeds", 1, "--runtime.type", "subprocess")
    run("vf-validate", "inquitree", "--only-gold", *arguments, "--taskset.fake-level", "0,10", "-o", tmp_path)
    (summary,) = tmp_path.rglob("summary.json")
    outcomes = json.loads(summary.read_text())["outcomes"]
    assert (outcomes["valid"], outcomes["invalid"]) == (4, 0)


@pytest.fixture
def served(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server of environments with two workers."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    spawning = multiprocessing.get_context("spawn")
    addresses = spawning.Queue()
    config = {"taskset": {"id": "inquitree", "papers": "paper8", "seeds": 4}}
    settings = {"max_workers": 2, "elastic": False, "address": "tcp://127.0.0.1:0", "config_data": config}
    server = spawning.Process(target=serve_env, kwargs={**settings, "address_queue": addresses})
    server.start()
    try:
        yield addresses.get(timeout=AT_MOST)
    finally:
        server.terminate()
        server.join()
        server.close()
        addresses.close()
        addresses.join_thread()


def test_a_server_with_two_workers_plays_the_same_inquiries(service: Service, served: str):
    service.reply = ROTE
    taskset = VerifiersTaskset(vf.taskset_config_type("inquitree")(id="inquitree", papers="paper8", seeds=4))

    async def run() -> list[vf.WireEpisode]:
        caller = EnvClient(served)
        try:
            plays = [
                caller.run(client(service), "m", vf.Sampling(), task.data.model_dump(mode="json")) for task in taskset
            ]
            return await asyncio.gather(*plays)
        finally:
            await caller.close()

    episodes = asyncio.run(run())
    assert fingerprints(episodes) == fingerprints(evaluate(service, {"papers": "paper8", "seeds": 4}))


# The package and the configuration of prime-rl


def test_the_plugin_is_three_names_and_builds_into_a_wheel(tmp_path: Path):
    import inquitree

    assert {getattr(inquitree, name) for name in inquitree.__all__} == {
        VerifiersHarness, VerifiersTaskset, VerifiersEnv,
    }  # fmt: skip
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=PLUGIN, check=True, stdout=subprocess.PIPE)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info" not in name} == {"inquitree.py"}


def test_the_configuration_for_prime_rl_names_our_settings():
    config = tomllib.loads((ROOT / "configs" / "prime-rl.toml").read_text(encoding="utf-8"))
    sources = [*config["orchestrator"]["train"]["source"], *config["orchestrator"]["eval"]["source"]]
    for source in sources:
        env = vf.resolve_env_config(source["env"])
        assert isinstance(env.player.runtime, vf.SubprocessConfig)
        assert env.agent_harnesses()["player"].id == "inquitree"


def test_without_the_extra_the_message_names_it():
    program = "import sys; sys.modules['verifiers'] = None; import inquitree_gym.integrations.verifiers"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert "MissingExtraError: This needs 'verifiers', which is not installed" in done.stderr
    assert "pip install -c constraints.txt '.[verifiers]'" in done.stderr


def test_the_tasks_say_what_the_model_is_told():
    (task,) = VerifiersTaskset(vf.taskset_config_type("inquitree")(id="inquitree", papers="paper2", seeds=1))
    assert task.data.system_prompt == inquiry_prompts(None, AGENT_TEMPLATE_NAMES).render("llm_system")
    assert task.data.prompt is None
    settings = vf.taskset_config_type("inquitree")(id="inquitree", papers="paper2", seeds=1, rules="paper")
    assert next(VerifiersTaskset(settings).load()).data.system_prompt == inquiry_prompts(
        "paper", ["llm_system"]
    ).render("llm_system")
    assert task.key == task.data.name == make_tasks("paper2", seeds=1)[0].key
    assert play_task(task.data.episode).footer.episode_return > 0
