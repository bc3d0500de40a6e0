"""Logs from anywhere: runs, folders of `LogEpisodes`, files of `play`, and what is no log at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from inquitree_gym import InquiryEnv, load_tree, play
from inquitree_gym.baselines import BaselineAgent, RandomAgent, make_agent
from inquitree_gym.errors import LogError
from inquitree_gym.judging.judgement import InProcessJudge
from inquitree_gym.log import LOG_VERSION, Episode, read_episode, to_line
from inquitree_gym.results.load import load_run
from inquitree_gym.results.logs import LoggedEpisode, find_logs, join_logs
from inquitree_gym.results.offline_judging import judge_texts, recorded_scores, stated_texts
from inquitree_gym.results.pages import write_report
from inquitree_gym.results.summary import summarise
from inquitree_gym.results.viewer import view_run
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers import LogEpisodes
from tests.inquiry.test_scoring import GivenJudge
from tests.inquiry.test_trajectory import CONCLUDE, END, enter, episode_of, result
from tests.results.html import read_page
from tests.strategies import make_tree


class Patient(BaselineAgent):
    """An agent of one's own with a setting; it reads the first subtopic aloud."""

    name = "patient"

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.patience = patience

    @property
    def config(self):
        return {"name": self.name, "patience": self.patience}

    def act(self, observation, info):
        return load_tree("paper8").subtopics[0].text if info["turn"] < self.patience else "draw conclusion"


def write_log(file: Path, episode: Episode, **header: object) -> Path:
    whole = (episode.header.model_copy(update=header), *episode.turns, episode.footer)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(to_line(record) for record in whole if record is not None), encoding="ascii")
    return file


def own_episode(tree: Tree, seed: int = 0) -> Episode:
    return episode_of(tree, enter("s1"), result("s1a"), CONCLUDE, END, seed=seed)


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """Logs of `play`, one of two configurations of an agent each, and a folder of `LogEpisodes`."""
    folder = tmp_path_factory.mktemp("logs")
    env = InquiryEnv("paper8", max_turns=4)
    for patience in (1, 2):
        for seed in (0, 1):
            play(env, Patient(patience), seed, file=folder / f"own-{patience}-{seed}.jsonl")
    logged = LogEpisodes(env, folder / "deep" / "er", agent={"name": "me"})
    for seed in (0, 1):
        logged.reset(seed=seed)
        for _ in range(5):
            logged.step("draw conclusion")
            if logged.episode.footer is not None:
                break
    logged.close()
    return folder


# Where logs come from


def test_logs_of_any_origin_stand_beside_the_baselines(played: Path, tmp_path: Path):
    run_study(make_study(agents=("oracle",), trees=("paper8",), seeds=2, max_turns=4), tmp_path / "run")
    runs = [load_run(tmp_path / "run"), load_run(played)]
    table = summarise([score for run in runs for score in run.scores])
    assert [(row.agent, row.episodes) for row in table] == [
        ("oracle", 2), ("patient (patience=1)", 2), ("patient (patience=2)", 2), ("me", 2),
    ]  # fmt: skip
    assert {row.limit for row in table} == {"4"}
    page = read_page(write_report(runs, tmp_path / "r.html")[0])
    assert "patient (patience=2)" in page.text


def test_one_log_is_read_alone_and_takes_the_limit_of_its_run(played: Path, tmp_path: Path):
    (score,) = load_run(played / "own-1-0.jsonl").scores
    assert (score.agent, score.seed, score.config) == ("patient", 0, {"name": "patient", "patience": 1})
    run_study(make_study(agents=("oracle",), trees=("paper8",), seeds=2, max_turns=15), tmp_path)
    (alone,) = load_run(tmp_path / "episodes" / "paper8_oracle_f0_s1.jsonl").scores
    assert (alone.seed, alone.limit) == (1, "15")
    renamed = shutil.copy(tmp_path / "episodes" / "paper8_oracle_f0_s1.jsonl", tmp_path / "some.log")
    assert [score.limit for score in load_run(renamed).scores] == ["15"]


def test_a_run_takes_in_logs_that_its_study_does_not_name_and_knows_what_is_missing(played: Path, tmp_path: Path):
    run_study(make_study(agents=("oracle",), trees=("paper8",), seeds=2, max_turns=4), tmp_path / "a")
    (tmp_path / "a" / "episodes" / "paper8_oracle_f0_s0.jsonl").unlink()
    shutil.copy(played / "own-1-0.jsonl", tmp_path / "a" / "episodes")
    shutil.copy(played / "own-1-1.jsonl", tmp_path)
    found = load_run(tmp_path)
    assert [(score.agent, score.seed) for score in found.scores] == [("patient", 1), ("oracle", 1), ("patient", 0)]
    assert [(each.name, each.status) for each in found.missing] == [("a/episodes/paper8_oracle_f0_s0.jsonl", "missing")]


def test_a_manifest_that_cannot_be_read_is_named_and_the_logs_are_read(played: Path, tmp_path: Path):
    shutil.copytree(played, tmp_path / "run" / "episodes")
    (tmp_path / "run" / "run.json").write_text('{"studies": [{"agents": []}]}')
    found = load_run(tmp_path / "run")
    assert len(found.scores) == 6
    assert [(each.name, each.status) for each in found.missing] == [("run.json", "damaged")]


# Trees


def test_logs_of_trees_that_are_not_at_hand_are_counted_and_named(played: Path, tmp_path: Path):
    tree = make_tree([[]], [1], tree_id="own")
    for seed in (0, 1):
        write_log(tmp_path / f"own-{seed}.jsonl", own_episode(tree, seed))
    stranger = read_episode(played / "own-1-0.jsonl").header.task.model_copy(update={"digest": "0" * 64})
    write_log(tmp_path / "old.jsonl", read_episode(played / "own-1-0.jsonl"), task=stranger)
    with pytest.raises(LogError, match=r"no finished episode that can be scored.*on paper8 with digest 000000000000"):
        load_run(tmp_path)
    shutil.copy(played / "own-1-0.jsonl", tmp_path)
    found = load_run(tmp_path)
    assert [score.task for score in found.scores] == ["paper8"]
    assert [(each.name, each.status) for each in found.missing] == [
        ("old.jsonl", "other task"), ("own-0.jsonl", "other task"), ("own-1.jsonl", "other task"),
    ]  # fmt: skip
    digest = load_tree("paper8").digest[:12]
    assert f"which is not at hand; the tree at hand has {digest}" in found.missing[0].error
    assert found.missing[1].error == found.missing[2].error
    remedy = "which is not at hand; put that version of it into a folder named by INQUITREE_TREES"
    assert found.missing[1].error.endswith(remedy)


# What is no log


def test_what_is_no_log_is_named_and_the_rest_goes_on(played: Path, tmp_path: Path):
    good = shutil.copy(played / "own-1-0.jsonl", tmp_path)
    whole = Path(good).read_bytes()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "foreign.jsonl").write_text('{"messages": []}\n' * 3)
    (tmp_path / "list.jsonl").write_text("[1]\n")
    (tmp_path / "text.jsonl").write_bytes(b"\xff\xfe no json\n")
    (tmp_path / "torn-header.jsonl").write_bytes(whole[:100])
    (tmp_path / "torn.jsonl").write_bytes(whole[:-5])
    (tmp_path / "damaged.jsonl").write_bytes(whole.replace(b'"kind":"turn"', b'"kind":"tarn"', 1))
    turns, footer = whole.removesuffix(b"\n").rsplit(b"\n", 1)
    nameless = json.dumps(json.loads(footer) | {"judge": {"version": 3}}).encode()
    (tmp_path / "nameless.jsonl").write_bytes(turns + b"\n" + nameless + b"\n")
    write_log(tmp_path / "newer.jsonl", read_episode(good), log_version=LOG_VERSION + 1)
    write_log(tmp_path / "other-seed.jsonl", read_episode(good), seed=7)
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("no log by its name")
    found = load_run(tmp_path)
    assert sorted(score.seed for score in found.scores) == [0, 7]
    told = {each.name: (each.status, each.error) for each in found.missing}
    assert {name: status for name, (status, _) in told.items()} == {
        "dangling.jsonl": "no log", "empty.jsonl": "no log", "foreign.jsonl": "no log", "list.jsonl": "no log",
        "newer.jsonl": "no log", "pipe.jsonl": "no log", "text.jsonl": "no log", "torn-header.jsonl": "no log",
        "damaged.jsonl": "damaged", "nameless.jsonl": "damaged", "torn.jsonl": "torn",
    }  # fmt: skip
    assert f"must have log_version {LOG_VERSION}, got {LOG_VERSION + 1}" in told["newer.jsonl"][1]
    assert "pipe.jsonl' must be a regular file, got a pipe" in told["pipe.jsonl"][1]
    assert "cannot read" in told["dangling.jsonl"][1]
    assert all("\n" not in error for _, error in told.values())


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path):
    with pytest.raises(LogError, match="does not exist; give a run, another folder of logs, or a log"):
        find_logs(tmp_path / "none")
    with pytest.raises(LogError, match=r"holds no finished episode that can be scored.*holds no episode log"):
        load_run(tmp_path)


# Other readers of logs


def test_loose_logs_are_judged_once_and_their_judgements_lie_beside_them(played: Path, tmp_path: Path):
    folder = Path(shutil.copytree(played, tmp_path / "logs"))
    judge = InProcessJudge("given", dict, lambda tree: GivenJudge(*[1.0] * len(tree.conclusions)))
    homes = find_logs(folder).homes
    assert [home.path for home in homes] == [folder, folder / "deep" / "er"]

    async def judge_all() -> list[int]:
        done = [await judge_texts(home.path, stated_texts(home), judge, 1, lambda _: None) for home in homes]
        return [each.judged for each in done]

    import asyncio

    assert asyncio.run(judge_all()) == [4, 2]
    assert asyncio.run(judge_all()) == [0, 0]
    assert [len(recorded_scores(home, judge.name)) for home in find_logs(folder).homes] == [4, 2]
    assert len(load_run(folder).scores) == 6


def test_loose_logs_have_an_index_whose_pages_link_back(played: Path, tmp_path: Path):
    folder = Path(shutil.copytree(played, tmp_path / "logs"))
    torn = folder / "deep" / "er" / "paper8-s1.jsonl"
    torn.write_bytes(torn.read_bytes()[:-5])
    index = view_run(folder)
    assert index == folder / "view" / "index.html"
    page = read_page(index)
    links = page.attributes("href")
    assert len(links) == 6
    for link in links:
        (back,) = [each for each in read_page(index.parent / link).attributes("href") if not each.startswith("#")]
        assert (index.parent / link).parent.joinpath(back).resolve() == index
    assert page.text.count("torn") == 1
    assert view_run(folder, wanted=lambda spec: (spec.agent, spec.seed) == ("me", 0)) == (
        folder / "view" / "deep" / "er" / "paper8-s0.html"
    )


def test_logs_under_several_paths_are_one_with_names_of_their_own(played: Path, tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").symlink_to(played / "own-1-0.jsonl")
    run_study(make_study(agents=("oracle",), trees=("paper8",), seeds=1, max_turns=4), tmp_path / "run")
    log = tmp_path / "run" / "episodes" / "paper8_oracle_f0_s0.jsonl"
    paths = (tmp_path / "a", tmp_path / "b", tmp_path / "b" / "x.jsonl", tmp_path / "run", log)
    logs = join_logs([find_logs(path) for path in paths])
    assert [entry.name for entry in logs.entries] == [
        "a/x.jsonl", "b/x.jsonl", "run/episodes/paper8_oracle_f0_s0.jsonl",
    ]  # fmt: skip
    index = view_run(logs, tmp_path / "pages")
    assert len(list((index.parent / "index-episodes").rglob("*.html"))) == 3
    assert join_logs([logs]) is logs


def test_a_log_is_read_with_its_tree_finished_or_not(tmp_path: Path):
    env = InquiryEnv("paper8", max_turns=3)
    env.reset(seed=0)
    episode = play(env, make_agent("random", env), 0, file=tmp_path / "a.jsonl")
    (entry,) = find_logs(tmp_path).entries
    found = entry.read()
    assert isinstance(found, LoggedEpisode)
    assert (found.task.id, found.episode.fingerprint, found.missing) == ("paper8", episode.fingerprint, None)
    assert (entry.spec.agent, entry.spec.seed, RandomAgent.name) == ("random", 0, "random")
