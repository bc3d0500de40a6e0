"""Failures of an episode, one scripted answer for each (SciExplore, 5.2 and A.7)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym import play
from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.failures import Shown, failures
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, Slot, TableGold, Work
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.proofs import answers
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.tasks import frozen_tasks
from inquitree_gym.wrappers import LogEpisodes
from tests.contract.command_line import inquitree

NUMBER = AnswerGold(kind="T1", parts=({"number": 260},))
TITLE = AnswerGold(kind="T2", parts=({"entity": "Slow gels"},))
TEXT = CitationGold(slots=(Slot(number=1, works=(Work(authors=("Ada Osk",), title="Slow gels"),)),))
TABLE = TableGold(headers=("Key", "Enrolled"), rows=(("a", "41"), ("b", "52"), ("c", "63")))
LONG = {"max_turns": 60, "searches": 30}
SEEN = {**LONG, "pages": ("The protein has 270 residues. Fast gels on clay.",)}
HEAD = "|Key|Enrolled|\n|-|-|\n"

CASES = [
    (NUMBER, "I cannot find any evidence.", Shown(max_turns=60, searches=2), ("abandoned",)),
    (NUMBER, None, Shown(max_turns=60, searches=6), ("abandoned",)),
    (NUMBER, None, Shown(max_turns=60, searches=7), ()),
    (NUMBER, "260", Shown(max_turns=60, searches=0, contradicted=True), ()),
    (NUMBER, "270", Shown(**SEEN), ()),
    (NUMBER, "27", Shown(**SEEN), ("hallucinated",)),
    (TITLE, "Fast gels", Shown(**SEEN, unchecked=True), ("hallucinated",)),
    (TITLE, "Fast gels", Shown(**SEEN, contradicted=True), ("premature",)),
    (TEXT, "Nothing was cited.", Shown(**LONG), ("format",)),
    (TEXT, "No evidence was found.", Shown(max_turns=60, searches=3), ("abandoned", "format")),
    (TEXT, "[ref.1: Per Lund. Dry gels.]", Shown(**LONG, invented=1), ("hallucinated",)),
    (TABLE, HEAD + "|a|41|", Shown(**LONG), ("breadth",)),
    (TABLE, "|Key|\n|-|\n|a|\n|b|", Shown(**LONG), ("format",)),
    (TABLE, "a: 41", Shown(**LONG), ("format", "breadth")),
]


@pytest.mark.parametrize(("gold", "answer", "shown", "expected"), CASES)
def test_a_failure_is_named(gold, answer, shown, expected):
    assert failures(answer, grade(gold, answer), shown) == expected


class ScriptedAgent(BaselineAgent):
    """Takes the same actions in every episode. Its name is the failure that they are."""

    def __init__(self, name: str, actions: tuple[str, ...]) -> None:
        super().__init__()
        self.name, self._actions = name, actions

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        return self._actions[info["turn"]]


def test_scripted_agents_fail_as_the_report_names_it(tmp_path: Path) -> None:
    task = frozen_tasks()["t1-s1-01"]
    library = local_library(task.library).library
    records, (column,) = library.records[task.query.database], task.asked
    right = answers(task.query, library)
    wrong = next(key for key, record in records.items() if key not in right and record[column] is not None)
    gold = float(task.gold.parts[0].number or 0)
    scripts = {
        "abandoned": ("ANSWER I cannot find any evidence.",),
        "hallucinated": (f"OPEN {task.evidence[0].document}", f"ANSWER {gold + 1000.125}"),
        "premature": (f"OPEN {wrong}", f"ANSWER {records[wrong][column]}"),
        "format": ("ANSWER There are some of them.",),
        "none": (f"OPEN {wrong}", *task.path),
    }
    for name, actions in scripts.items():
        env = LogEpisodes(ExplorationEnv("t4-s3-02" if name == "format" else task), tmp_path / "logs")
        play(env, ScriptedAgent(name, actions), seed=0)
    done = inquitree("report", tmp_path / "logs", "--out", tmp_path / "report.html")
    assert done.status == 0, done.err
    with (tmp_path / "report-tables" / "failures.csv").open(encoding="utf-8") as file:
        rows = {row["system"]: row for row in csv.DictReader(file)}
    shown = {name: {each for each in (*scripts, "breadth") if row.get(each) == "100.0"} for name, row in rows.items()}
    alone = {name: {name} for name in ("abandoned", "hallucinated", "premature")}
    assert shown == {**alone, "format": {"format", "breadth"}}
