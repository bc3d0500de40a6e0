"""`inquitree reproduce`: every target on baselines and on models of a real server on loopback."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from inquitree_gym.inquiry.paper.studies import TARGETS
from inquitree_gym.log import read_episode
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.worlds import actual_world, in_world
from tests.contract.command_line import inquitree
from tests.results.html import read_page
from tests.servers import Body, Service, failed

pytestmark = [pytest.mark.e2e, pytest.mark.weights]
PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"
COMMANDS = re.findall(r"^\$ inquitree (reproduce .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
SMALL = ("--papers", "2,17", "--seeds", 1)
"""Options that make an experiment small."""
FINDING = re.compile(r"^(F\d+-[0-9A-F]{6}): ", re.MULTILINE)


def reply(body: Body) -> str:
    """Conclude at the first result, doubt every bare statement, and grade every conclusion in full."""
    asked = body["messages"][-1]["content"]
    if codes := FINDING.findall(asked):
        return "\n".join(f"REASON {code}: so it is.\nVERDICT {code}: 1" for code in codes)
    if "VERDICT" in body["messages"][0]["content"]:
        return "REASON: it cannot be.\nVERDICT: INVALID"
    return "THOUGHT: enough.\nACTION: draw_conclusion"


@pytest.mark.parametrize("command", [each for each in COMMANDS if "--model" not in each])
def test_the_commands_of_the_page_make_their_figures(command: str, tmp_path: Path):
    verb, target, *flags = shlex.split(command)
    small = SMALL if flags else SMALL[:2]
    done = inquitree(verb, target, *flags, *small, "--out", tmp_path)
    assert done.status == 0, done.err
    page = read_page(tmp_path / f"{target}.html")
    assert "What cannot be compared with the paper, and why" in page.text
    assert "inquitree-gym" in (tmp_path / f"{target}.md").read_text()
    assert {file.suffix for file in (tmp_path / f"{target}-tables").iterdir()} == {".csv", ".md", ".tex"}
    if flags:
        assert "none; name one with --judge" in " ".join(page.text.split())
        assert "Conclusions are not judged: name a judge with --judge." in " ".join(page.text.split())
        assert "differs from the paper's experiment: papers: 2 in the place of" in page.text
        (episode, *_) = sorted((tmp_path / "run" / "episodes").iterdir())
        assert read_episode(episode).header.rules["decisions"] == "tokens"


def test_every_target_has_a_command_on_the_page():
    assert {command.split()[1] for command in COMMANDS if "--model" not in command} == set(TARGETS)


@pytest.mark.usefixtures("drawn")
def test_a_model_is_played_probed_and_judged_once(service: Service, tmp_path: Path):
    service.reply = reply
    model = ("--model", "openai/o3", "--base-url", service.address, "--reasoning-effort", "high", "--reply-tokens", 900)
    judge = ("--judge", "llm-paper:gpt-4o-mini", "--judge-base-url", service.address)
    options = (*model, *judge, *SMALL, "--out", tmp_path, "--max-concurrency", 2)
    done = inquitree("reproduce", "fig3", *options)
    assert done.status == 0, done.err
    assert {request.body.get("max_completion_tokens") for request in service.requests} >= {900}
    page = (tmp_path / "fig3.md").read_text()
    told = [in_world(tree, actual_world(tree)) for tree in map(load_tree, ("paper2", "paper17"))]
    fakes = sum(len(study.outcomes) - 1 for each in told for study in each.studies)
    assert f"| openai/o3 (high) | {fakes} | 1.000 |" in page, "the control calls every fake invalid"
    assert "judged by llm-paper:gpt-4o-mini v1; rules: paper" in page
    assert re.search(r"\| llm openai/o3 \(high\) \| 3 \| 2 \| 0\.000 \| undefined \|", page)
    asked = len(service.requests)
    again = inquitree("reproduce", "fig3", *options)
    assert "0 episodes played, 8 already complete" in again.said
    assert len(service.requests) == asked, "nothing is paid for twice"
    split = inquitree("reproduce", "fig4", *options)
    assert "0 episodes played, 2 already complete" in split.said, "Figure 4 takes the episodes at level 0"
    assert "| llm openai/o3 (high) | 2024-06-01 | coverage |" in (tmp_path / "fig4.md").read_text()


def test_another_agent_joins_the_page_when_it_has_played_all_of_it(tmp_path: Path):
    inquitree("reproduce", "table2", "--agent", "oracle", "--papers", "2", "--seeds", 1, "--out", tmp_path)
    done = inquitree("reproduce", "table2", "--agent", "random", *SMALL, "--out", tmp_path)
    assert done.status == 0, done.err
    page = (tmp_path / "table2.md").read_text()
    assert ("| random | 2 | 2 |" in page, "oracle" in page) == (True, False)
    assert inquitree("reproduce", "table2", "--agent", "oracle", *SMALL, "--out", tmp_path).status == 0
    assert "| oracle − random |" in (tmp_path / "table2.md").read_text()


def test_a_failed_episode_is_counted_on_the_page_and_played_by_the_same_command(service, tmp_path):
    service.reply = reply
    service.planned.append(failed(400, "no such parameter"))
    model = ("--model", "gpt-4o-mini", "--base-url", service.address, "--max-concurrency", 1)
    command = ("reproduce", "table2", *model, *SMALL, "--out", tmp_path)
    done = inquitree(*command)
    assert done.status == 2
    assert (
        "1 episode failed and 0 left; correct the faults named above, then run the same command again to resume"
        in done.said
    )
    assert "Missing or failed episodes: 1." in (tmp_path / "table2.md").read_text()
    assert inquitree(*command).status == 0
    assert "Missing or failed" not in (tmp_path / "table2.md").read_text()


def test_cutoffs_of_ones_own_split_figure_4(service: Service, tmp_path: Path):
    service.reply = reply
    file = tmp_path / "models.toml"
    file.write_text(
        '[sources]\ncard = "a card"\n[[models]]\nname = "Mine"\npatterns = ["mine"]\n'
        'cutoff = { date = "2023-01-01", source = "card" }\n'
    )
    model = ("--model", "openai/mine", "--base-url", service.address)
    command = ("reproduce", "fig4", *model, *SMALL, "--out", tmp_path)
    assert inquitree(*command).status == 0
    assert "No cutoff is known for openai/mine; add one with --models." in (tmp_path / "fig4.md").read_text()
    assert inquitree(*command, "--models", file).status == 0
    page = (tmp_path / "fig4.md").read_text()
    assert "| llm openai/mine | 2023-01-01 | coverage |" in page
    assert "No cutoff is known" not in page


def test_a_dry_run_writes_nothing(tmp_path: Path):
    done = inquitree("reproduce", "fig3", "--agent", "random", "--dry-run", "--out", tmp_path / "new")
    assert done.status == 0, done.err
    assert re.search(r"all\W+120\b", done.out), "ten papers, four levels, three runs"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("table2",), "table2 needs an agent that plays: name models with --model"),
        (("bounds", "--model", "gpt-4o"), "bounds plays nothing; leave out --model"),
        (("table3", "--seeds", 2), "table3 plays nothing; leave out --seeds"),
        (("fig9",), "Invalid value for 'TARGET'"),
        (("table2", "--agent", "random", "--judge", "nobody"), "no judge is called 'nobody'"),
        (("table2", "--agent", "random", "--papers", "6"), "may not be distributed"),
        (("table2", "--agent", "nobody"), "no agent is called 'nobody'"),
    ],
)
def test_a_wrong_command_is_one_clear_line_and_writes_nothing(arguments, told, tmp_path):
    done = inquitree("reproduce", *arguments, "--out", tmp_path / "new")
    assert done.status == 2
    assert told in done.said
    assert not (tmp_path / "new").exists()
