"""A study on Ray, where it is installed: the same episodes as without, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import inquitree_gym
from inquitree_gym import __version__
from inquitree_gym.cluster import LOCAL, connected
from inquitree_gym.errors import BudgetError, InquiTreeError, OptionError
from inquitree_gym.llm import Budget, Completion
from inquitree_gym.runner import RunOptions, RunSummary, run_study
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.ray import MAX_DEATHS, RayExecutor, RayWorker, _RemoteLimits, _SharedLimits
from inquitree_gym.runner.run import RunContext
from inquitree_gym.runner.services import StopConditions
from inquitree_gym.runs.folder import load_manifest
from tests.contract.command_line import Done, inquitree
from tests.runner.played import TREE, TURNS, episodes, fingerprints, sent_seed, study_of
from tests.servers import COMPLETION_TOKENS, PROMPT_TOKENS, WAIT_AT_MOST, Body, Rote, Service, failed

pytestmark = [
    pytest.mark.weights,
    pytest.mark.e2e,
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed"),
]

TOKENS = PROMPT_TOKENS + COMPLETION_TOKENS


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One cluster for several runs: a process's own connection is used, and left open."""
    with connected(LOCAL):
        import ray

        yield ray


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and title of every process."""
    told = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in told.splitlines()[1:])
    return {int(pid): (int(parent), title) for pid, parent, title in rows}


def workers() -> list[int]:
    """Return the processes of workers that descend from this one."""
    rows, ours = processes(), {os.getpid()}
    for _ in range(3):  # Ray's own process is a child, workers are its children
        ours |= {pid for pid, (parent, _) in rows.items() if parent in ours}
    return [pid for pid in ours if pid in rows and rows[pid][1].startswith("ray::RayWorker")]


def kill_workers() -> None:
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


class AtRequest:
    """Answers by heart, and does something first when request number ``number`` comes."""

    def __init__(self, number: int, act: Callable[[], None], times: int = 1) -> None:
        self._rote = Rote(TREE)
        self._numbers = range(number, number + times)
        self._act = act
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, body: Body) -> str:
        with self._lock:
            self._count += 1
            if self._count in self._numbers:
                self._act()
        return self._rote(body)


# Refusals


def test_a_worker_has_to_see_the_folder_and_be_of_the_same_release(rote: Service, tmp_path: Path):
    run, here, marker = RunContext(study_of(rote), tmp_path), os.getcwd(), tmp_path / "marker"
    marker.touch()
    assert RayWorker(run, __version__, here, marker)
    with pytest.raises(OptionError, match=r"has inquitree-gym .*given with 0\.0\.9; install"):
        RayWorker(run, "0.0.9", here, marker)
    for directory, file in ((here, tmp_path / "nothing"), (str(tmp_path / "nowhere"), marker)):
        with pytest.raises(OptionError, match="file system that all machines share"):
            RayWorker(run, __version__, directory, file)


def test_a_worker_that_cannot_take_part_ends_the_run_with_its_reason(
    cluster: Any, rote: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inquitree_gym, "__version__", "0.0.9")
    with pytest.raises(InquiTreeError, match=r"^Ray cannot start a worker: \S+ has inquitree-gym .* on every machine$"):
        run_study(study_of(rote), tmp_path, executor=RayExecutor())


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at '127.0.0.1:1'"),
        ("ray://127.0.0.1:1", "is no address of a Ray cluster; give HOST:PORT"),
        ("nonsense", "is no address of a Ray cluster; give HOST:PORT"),
    ],
)
def test_an_address_without_a_cluster_is_told(rote: Service, tmp_path: Path, address: str, told: str):
    with pytest.raises(InquiTreeError, match=told):
        run_study(study_of(rote), tmp_path, executor=RayExecutor(address))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rate_limits": {"gpt-4o-mini": object()}}, "set the rates in the study"),
        ({"device": "auto"}, "Ray workers embed on the CPU; leave out the device 'auto'"),
    ],
)
def test_options_of_this_process_are_refused(rote: Service, tmp_path: Path, options: dict, told: str):
    with pytest.raises(OptionError, match=told):
        run_study(study_of(rote), tmp_path, RunOptions(**options), executor=RayExecutor())


# The same


def test_results_are_those_of_the_local_runner(cluster: Any, rote: Service, tmp_path: Path):
    study = study_of(rote, "random", "oracle", "llm", "sceptic", seeds=3)
    told = []
    assert run_study(study, tmp_path / "here") == RunSummary(12, 0)
    asked = len(rote.requests)
    assert run_study(
        study, tmp_path / "ray", RunOptions(max_concurrency=3), told.append, executor=RayExecutor()
    ) == RunSummary(12, 0)
    assert len(rote.requests) == 2 * asked
    assert fingerprints(tmp_path / "ray") == fingerprints(tmp_path / "here")
    assert {outcome.spec.file_name for outcome in told} == episodes(tmp_path / "here").keys()
    replies = [
        {name: [reply.text for reply in episode.replies] for name, episode in episodes(tmp_path / place).items()}
        for place in ("here", "ray")
    ]
    assert replies[0] == replies[1]
    assert run_study(study, tmp_path / "ray", executor=RayExecutor()) == RunSummary(0, 12)
    assert sorted(file.name for file in (tmp_path / "ray").iterdir()) == ["episodes", "run.json", "run.lock", "tasks"]
    assert cluster.is_initialized(), "a connection that was there is left open"


def test_paid_replies_come_from_a_cache_that_workers_share(cluster: Any, rote: Service, tmp_path: Path):
    terms = RunOptions(max_concurrency=1, cache=tmp_path / "replies")
    run_study(study_of(rote), tmp_path / "first", terms)
    run_study(study_of(rote), tmp_path / "second", terms, executor=RayExecutor())
    assert len(rote.requests) == 2 * TURNS
    assert all(reply.cached for episode in episodes(tmp_path / "second").values() for reply in episode.replies)


# What dies


def test_a_killed_worker_loses_no_finished_turn_and_an_episode_that_kills_them_all_is_given_up(
    cluster: Any, rote: Service, tmp_path: Path
):
    asked: Counter[int] = Counter()
    seeds = {sent_seed(seed): seed for seed in range(3)}
    play = Rote(TREE)

    def deadly(body: Body) -> str:
        seed = seeds[body["seed"]]
        asked[seed] += 1
        if seed == 2 or (seed, asked[seed]) == (1, 5):
            kill_workers()
        return play(body)

    rote.reply = deadly
    summary = run_study(study_of(rote, seeds=3), tmp_path, RunOptions(max_concurrency=1), executor=RayExecutor())
    assert (summary.played, summary.left) == (2, 0)
    (failure,) = summary.failures
    assert (failure.spec.seed, failure.error) == (2, f"{MAX_DEATHS} workers died while playing it")
    # Of the second episode only the request under way was lost, and is made again.
    assert asked == {0: TURNS, 1: TURNS + 1, 2: MAX_DEATHS}
    whole, resumed, _ = episodes(tmp_path).values()
    assert [each.text for each in resumed.replies[:-1]] == [each.text for each in whole.replies[:-1]]
    assert resumed.actions[:-1] == whole.actions[:-1], "letters of the exam are those of a seed"


@pytest.fixture(scope="module")
def head() -> Iterator[Any]:
    """The head of a cluster of several nodes, without a processor. Its nodes are processes here, on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # confines it to the loopback address
        from ray.cluster_utils import Cluster

        made = Cluster(shutdown_at_exit=False)
        try:
            add_node(made, cpus=0)
            yield made
        finally:
            made.shutdown()


def add_node(head: Any, cpus: int = 1) -> Any:
    return head.add_node(
        num_cpus=cpus, object_store_memory=100_000_000, node_ip_address="127.0.0.1", include_dashboard=False
    )


def kill_node(head: Any, node: Any, service: Service) -> None:
    """Kill a node, and wait until its workers, which outlive it for a moment, have noticed."""
    (raylet,) = node.all_processes["raylet"]
    theirs = [pid for pid, (parent, title) in processes().items() if parent == raylet.process.pid and "::" in title]
    head.remove_node(node, allow_graceful=False)
    deadline = time.monotonic() + WAIT_AT_MOST
    while any(processes().get(pid, (0, ""))[1].startswith("ray::") for pid in theirs):
        assert time.monotonic() < deadline
        service.wait(0.1)


def played_on(
    head: Any, service: Service, folder: Path, seeds: int, concurrency: int
) -> subprocess.CompletedProcess[str]:
    """Play a run by the command line. See `on_cluster`."""
    model = ("--agent", "llm", "--model", "gpt-4o-mini", "--base-url", service.address, "--papers", "2")
    where = ("--max-concurrency", str(concurrency), "--seeds", str(seeds), "--out", str(folder))
    return on_cluster(head, "run", *model, *where)


def on_cluster(head: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call the command line, which gives a cluster without a processor up after a second."""
    code = "from inquitree_gym import cluster; cluster.NO_CPU = 1.0; from inquitree_gym.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments, "--ray", head.address]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_AT_MOST)


def test_a_node_that_dies_costs_no_episode_and_only_requests_in_flight_are_paid_again(
    head: Any, rote: Service, tmp_path: Path
):
    slots, seeds, play = 4, 6, Rote(TREE)
    begun, gone, lock, asked = threading.Barrier(slots), threading.Event(), threading.Lock(), Counter[str]()
    first, second = add_node(head), add_node(head)

    def answer(body: Body) -> str:
        with lock:
            asked[json.dumps(body, sort_keys=True)] += 1
            number = asked.total()
        # All slots play at once, so both nodes do, with half of them each; when one dies, all have a request in flight.
        if number <= slots or 2 * slots < number <= 3 * slots:
            begun.wait(WAIT_AT_MOST)
        if number == 3 * slots:
            kill_node(head, second, rote)
            gone.set()
        elif number > 2 * slots:
            gone.wait(WAIT_AT_MOST)
        return play(body)

    rote.reply = answer
    try:
        done = played_on(head, rote, tmp_path, seeds, slots)
    finally:
        head.remove_node(first)
    assert done.returncode == 0, done.stderr
    played = episodes(tmp_path)
    assert [episode.footer is not None for episode in played.values()] == [True] * seeds
    assert sum(len(episode.replies) for episode in played.values()) == len(asked) == seeds * TURNS
    again = asked.total() - len(asked)
    assert 1 <= again <= slots // 2, "each slot of the dead node had one request in flight"


def test_a_cluster_without_a_processor_ends_the_run_and_another_resumes_it(head: Any, rote: Service, tmp_path: Path):
    only = add_node(head)
    rote.reply = AtRequest(3, lambda: kill_node(head, only, rote))
    done = played_on(head, rote, tmp_path, seeds=1, concurrency=1)
    assert run_study(load_manifest(tmp_path).studies[0], tmp_path).is_complete
    for ended in (done, on_cluster(head, "score", str(tmp_path))):
        assert ended.returncode == 2, ended.stderr
        assert "the Ray cluster has had no processor for 1 s" in " ".join(ended.stderr.split())
    assert len(rote.requests) == TURNS + 1


# Scores


def test_scores_and_reports_are_those_without_ray(cluster: Any, tmp_path: Path):
    run = tmp_path / "run"
    run_study(make_study(agents=("random", "oracle"), trees=("2", "8"), seeds=5), run)
    torn = next((run / "episodes").iterdir())
    torn.write_bytes(torn.read_bytes()[:-40])
    page = tmp_path / "page"

    def told(*ray: str) -> tuple[Done, Done, dict[str, bytes]]:
        scored = inquitree("score", run, "--json", *ray)
        reported = inquitree("report", run, "--all", "--out", page, *ray)
        return scored, reported, {file.name: file.read_bytes() for file in page.rglob("*") if file.is_file()}

    here = told()
    assert told("--ray", LOCAL) == here
    assert len(here[0].json) == 19
    assert f"not scored: {torn.name}" in here[0].said


# What ends


def test_a_cap_holds_for_all_workers_together_and_resuming_goes_on(cluster: Any, rote: Service, tmp_path: Path):
    study = study_of(rote, seeds=4)
    budget = Budget(max_total_tokens=20 * TOKENS)
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=2, budget=budget), executor=RayExecutor())
    assert f"the cap of {20 * TOKENS} tokens is reached" in summary.ended
    assert summary.left == 4 - summary.played
    assert 20 <= len(rote.requests) < 20 + 2
    assert budget.usage.replies == len(rote.requests)
    assert run_study(study, tmp_path).is_complete
    assert len(rote.requests) == 4 * TURNS


def test_a_fault_of_one_model_ends_that_one(cluster: Any, rote: Service, tmp_path: Path):
    models = [
        {"model": "gpt-4o-mini", "base_url": rote.address, "retries": 0},
        {"model": "gpt-4o-mini", "base_url": rote.address, "retries": 0, "name": "other", "seed": 7},
    ]
    play = Rote(TREE)

    def answer(body: Body) -> str:
        if body["seed"] == 7:
            rote.planned.append(failed(401))  # to the next request, which is of the same episode
        return play(body)

    rote.reply = answer
    study = make_study(agents=("llm",), models=models, trees=("2",), seeds=3)
    summary = run_study(study, tmp_path, RunOptions(max_concurrency=1), executor=RayExecutor())
    assert summary.models.keys() == {"other"}
    assert "check the key" in summary.models["other"]
    assert (summary.played, len(summary.failures), summary.left) == (3, 1, 2)


def test_it_can_be_ended_from_outside(cluster: Any, tmp_path: Path):
    stop = StopConditions()
    study = make_study(agents=("random",), trees=("2",), seeds=100)
    summary = run_study(
        study, tmp_path, on_outcome=lambda outcome: stop.stop("enough"), stop=stop, executor=RayExecutor()
    )
    assert summary.ended == "enough"
    assert summary.played == len(episodes(tmp_path)) < 100


def test_ctrl_c_ends_it_in_order_and_the_command_goes_on_without_ray(rote: Service, tmp_path: Path):
    seeds = 6
    model = ("--agent", "llm", "--model", "gpt-4o-mini", "--base-url", rote.address, "--papers", "2")
    where = ("--max-concurrency", "1", "--seeds", str(seeds), "--out", str(tmp_path), "--ray", "local")
    # Ctrl-C as a terminal has it, also where these tests run in the background, which hands "ignored" on.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from inquitree_gym.runner import ray; ray.GRACE = 1e6; from inquitree_gym.cli import main; main()"
    command = [sys.executable, "-c", code, "run", *model, *where]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        rote.reply = AtRequest(6, lambda: os.killpg(running.pid, signal.SIGINT))  # the whole group, as a terminal does
        _, said = running.communicate(timeout=WAIT_AT_MOST)
    assert (running.returncode, "run the same command again" in said) == (130, True)
    logged = sum(len(episode.replies) for episode in episodes(tmp_path).values())
    assert 6 <= logged == len(rote.requests) < seeds * TURNS, "what is under way is still paid, and logged"
    assert run_study(load_manifest(tmp_path).studies[0], tmp_path).is_complete
    assert len(rote.requests) == seeds * TURNS


# The shared limits


def test_workers_share_one_budget_and_one_pace_per_model(cluster: Any, rote: Service):
    study = study_of(rote, requests_per_minute=1)
    limits = cluster.remote(num_cpus=0)(_SharedLimits).remote(
        study.models, Budget(max_total_tokens=10, max_seconds=1000)
    )
    one, other = (_RemoteLimits(limits) for _ in range(2))
    rates = [_RemoteLimits(limits, model="gpt-4o-mini") for _ in range(2)]
    waits = [rate.reserve(5).wait for rate in rates]
    assert waits[0] == 0
    assert 0 < waits[1] <= 60
    rates[0].settle(rates[0].reserve(5), Completion("so", "stop", {"prompt": 1, "completion": 1}, None, retries=3))
    assert rates[1].reserve(5).wait > 240
    one.check()
    one.add(Completion("so", "stop", {"prompt": 5, "completion": 5}, 0.1))
    with pytest.raises(BudgetError, match="the cap of 10 tokens is reached: 1 reply took 10; no further request"):
        other.check()
    assert [reply.tokens for reply in cluster.get(limits.take_payments.remote())] == [{"prompt": 5, "completion": 5}]
    assert cluster.get(limits.take_payments.remote()) == []
    cluster.kill(limits)
