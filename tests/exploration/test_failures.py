"""Failures of an episode, one scripted answer for each (SciExplore, 5.2 and A.7)."""

from __future__ import annotations

import pytest

from inquitree_gym.exploration.failures import Shown, failures
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, Slot, TableGold, Work
from inquitree_gym.exploration.graders import grade

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
