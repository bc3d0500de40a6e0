"""Judgements beside a run: written as they happen, read back, damaged, torn, in use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.errors import JudgeError, LogError
from inquitree_gym.judges import Judgement, JudgementFile, Verdict, read_judgements
from inquitree_gym.judges.records import judgements_by_label
from inquitree_gym.llm import Usage
from inquitree_gym.scoring import score_episode
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.fields import CANARY
from tests.scoring.test_trajectory import CONCLUDE, END, enter, episode_of, result
from tests.strategies import make_tree

SAID = "1. It rose."
RULING = Judgement(
    (Verdict(1.0, "said so"), Verdict(None, "no verdict"), Verdict(0.25, "")), Usage(replies=2, cost=0.5)
)
FULL = Judgement((Verdict(1.0, ""), Verdict(0.6, ""), Verdict(0.0, "")))


@pytest.fixture
def tree() -> Tree:
    return make_tree([[], [], []], [1, 1, 1])


def keep(run: Path, tree: Tree, judgement: Judgement = RULING, judge: str = "llm:a/b", **config: object) -> Path:
    with JudgementFile(run, judge, config) as kept:
        kept.add("one.jsonl", tree, SAID, judgement)
        return kept.path


def test_what_is_kept_is_read_again(tree: Tree, tmp_path: Path):
    keep(tmp_path, tree, repeats=2)
    (found,) = read_judgements(tmp_path)
    assert (found.judge, found.config, list(found.by_episode)) == ("llm:a/b", {"repeats": 2}, ["one.jsonl"])
    judgement = found.by_episode["one.jsonl"]
    assert [(each.item, each.score, each.why) for each in judgement.verdicts] == [
        ("c1", 1.0, "said so"), ("c2", None, "no verdict"), ("c3", 0.25, ""),
    ]  # fmt: skip
    assert (judgement.unscored, judgement.usage) == (1, {"replies": 2, "cost": 0.5})
    assert found.item_scores() == {("made", "one.jsonl"): (1.0, None, 0.25)}


def test_a_file_of_version_1_is_read(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree)
    text = file.read_text().replace('"judgement_version":2', '"judgement_version":1')
    file.write_text(text.replace('"usage":{"replies":2.0,"cost":0.5}', '"spent":{"asked":2,"dollars":0.5}'))
    (found,) = read_judgements(tmp_path)
    assert found.by_episode["one.jsonl"].usage == {"asked": 2, "dollars": 0.5}
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        kept.add("two.jsonl", tree, SAID, FULL)
    assert list(read_judgements(tmp_path)[0].by_episode) == ["one.jsonl", "two.jsonl"]


def test_half_a_surrogate_pair_in_a_reason_is_read_again(tree: Tree, tmp_path: Path):
    why = "the model wrote \ud83d and stopped"
    keep(tmp_path, tree, Judgement((Verdict(1.0, why), *FULL.verdicts[1:])))
    (found,) = read_judgements(tmp_path)
    assert found.by_episode["one.jsonl"].verdicts[0].why == why
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        assert kept.holds("one.jsonl", tree, SAID)


def test_the_file_carries_the_canary_and_not_the_conclusion(tree: Tree, tmp_path: Path):
    text = keep(tmp_path, tree).read_text()
    assert CANARY in text.splitlines()[0]
    assert SAID not in text


def test_a_run_that_nobody_judged_has_no_judgements(tmp_path: Path):
    assert read_judgements(tmp_path) == []


def test_every_judge_and_setting_has_a_file_of_its_own(tree: Tree, tmp_path: Path):
    files = [keep(tmp_path, tree, repeats=1), keep(tmp_path, tree, repeats=2), keep(tmp_path, tree, judge="local")]
    assert len(set(files)) == 3
    assert keep(tmp_path, tree, repeats=1) == files[0]
    labels = judgements_by_label(read_judgements(tmp_path))
    assert sorted(labels) == ["llm:a/b v1", "llm:a/b v1 #2", "local v1"]
    assert {labels["llm:a/b v1"].config["repeats"], labels["llm:a/b v1 #2"].config["repeats"]} == {1, 2}


def test_only_a_whole_judgement_of_this_conclusion_on_this_tree_is_held(tree: Tree, tmp_path: Path):
    with JudgementFile(tmp_path, "local", {}) as kept:
        kept.add("one.jsonl", tree, SAID, RULING)
        assert not kept.holds("one.jsonl", tree, SAID), "an item is unscored"
        kept.add("one.jsonl", tree, SAID, FULL)
        assert kept.holds("one.jsonl", tree, SAID)
        assert not kept.holds("one.jsonl", tree, SAID + " More.")
        assert not kept.holds("one.jsonl", load_tree("paper8"), SAID)
        assert not kept.holds("two.jsonl", tree, SAID)
    (found,) = read_judgements(tmp_path)
    assert found.by_episode["one.jsonl"].unscored == 0, "the last one counts"


def test_a_line_torn_at_the_end_is_dropped(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree)
    whole = file.read_bytes()
    file.write_bytes(whole + whole.splitlines()[1][:40])
    assert list(read_judgements(tmp_path)[0].by_episode) == ["one.jsonl"]
    with JudgementFile(tmp_path, "llm:a/b", {}) as kept:
        kept.add("two.jsonl", tree, SAID, FULL)
    assert list(read_judgements(tmp_path)[0].by_episode) == ["one.jsonl", "two.jsonl"]
    # One torn within its first line holds nothing, and is begun anew.
    file.write_bytes(whole[:30])
    assert read_judgements(tmp_path) == []
    assert keep(tmp_path, tree) == file
    assert list(read_judgements(tmp_path)[0].by_episode) == ["one.jsonl"]


@pytest.mark.parametrize("line", [b"{}", b"not json", b'{"kind": "judge", "judge": "x", "config": {}}'])
def test_a_damaged_line_is_named(line: bytes, tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree)
    file.write_bytes(file.read_bytes() + line + b"\n")
    with pytest.raises(JudgeError, match=r"llm-a-b-\w+\.jsonl', line 3: .*; remove the file and judge the run again"):
        read_judgements(tmp_path)


def test_two_processes_do_not_write_one_file(tree: Tree, tmp_path: Path):
    with JudgementFile(tmp_path, "local", {}), pytest.raises(LogError, match="another process is writing"):
        JudgementFile(tmp_path, "local", {})


def test_episodes_are_scored_by_what_was_judged(tree: Tree, tmp_path: Path):
    episode = episode_of(tree, enter("s1"), result("s1a"), CONCLUDE, END)
    keep(tmp_path, tree, FULL)
    (found,) = read_judgements(tmp_path)
    judge = found.of("one.jsonl", tree)
    scored = score_episode(episode, tree, judge)
    assert (scored.judge, scored.quality) == ("llm:a/b", 1.0)  # s2 and s3 were never seen
    assert found.of("two.jsonl", tree) is None
    assert found.of("one.jsonl", load_tree("paper8")) is None
    with pytest.raises(JudgeError, match="judged another conclusion"):
        judge.judge("1. It fell.")


def test_a_file_name_holds_no_path(tree: Tree, tmp_path: Path):
    file = keep(tmp_path, tree, judge="nli:../../etc/Modell ß" + "x" * 300)
    assert file.parent == tmp_path / "judgements"
    assert file.name.startswith("nli-..-..-etc-Modell-x")
    assert len(file.name) < 120
    assert json.loads(file.read_text().splitlines()[0])["judge"].startswith("nli:../../etc")
