"""Each rule about axes fires on a tree with worlds that is broken in just that way, and on no other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from inquitree_gym.errors import Fault
from inquitree_gym.trees.courses import courses
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.rules import RULES
from tests.hashing import HashingEmbedder
from tests.strategies import make_tree
from tests.worlds import clean_document, node, read, study, world_document

Break = Callable[[dict[str, Any]], object]


@cache
def broken(*breaks: Break) -> list[Fault]:
    document = clean_document()
    for break_it in breaks:
        break_it(document)
    return lint_tree(read(document))


def told(faults: list[Fault]) -> list[str]:
    return [f"{fault.code} {fault.path} {fault}" for fault in faults]


def result(document: dict[str, Any], name: str) -> dict[str, Any]:
    studies = (each for subtopic in document["subtopics"] for each in subtopic["studies"])
    return next(each["result"] for each in studies if each["id"] == name)


def reword(name: str, key: str, place: int, text: str) -> Break:
    return lambda document: result(document, name)["texts"][key].__setitem__(place, text)


def reread(name: str, *axes: int) -> Break:
    return lambda document: result(document, name).update(study(name, [2, 2, 3, 2, 2], axes)["result"])


def infer(*names: str) -> Break:
    return lambda document: [result(document, name).update(support="inferred") for name in names]


def settle(*others: int) -> Break:
    return lambda document: [document["axes"][axis].update(settled_by="paper") for axis in others]


def add_subtopics(document: dict[str, Any], *axes: list[int]) -> None:
    """Append subtopics with one study each, and what the linter wants of them."""
    for each in axes:
        name = f"s{len(document['subtopics']) + 1}"
        text = f"Of {name}, which of the many readings that can be taken does it find?"
        inner = study(f"{name}a", [2, 2, 3, 2, 2], each)
        document["subtopics"].append(node(name, text) | {"name": name, "prerequisites": [], "studies": [inner]})
        for added in (name, f"{name}a"):
            document["provenance"]["support"].append({"node": added, "sources": [], "strength": "unconfirmed"})


def test_a_good_tree_is_clean_under_the_checks_of_meaning_too():
    tree = read(clean_document())
    assert lint_tree(tree) == []
    codes = {fault.code for fault in lint_tree(tree, HashingEmbedder().embed)}
    assert {code[:2] for code in codes} <= {"T5", "T6"}  # the example is not written for a matcher


def test_one_axis_is_singular():
    (found,) = lint_tree(make_tree([[]], [1]), only={"T901"})
    assert found.message.startswith("1 axis, needs ")


NEEDS = "conclusions[1].needs"
PLACE = "subtopics[0].studies[0].result.texts"
FAULTS: list[tuple[list[Break], str]] = [
    ([lambda d: d["axes"].append(d["axes"][0] | {"id": "a6"})], "T901 axes 6 axes, needs 5 with 4 subtopics; join"),
    ([lambda d: add_subtopics(d, [], [], [], [])], "T901 axes 5 axes, needs 6 to 8 with 8 subtopics"),
    ([reread("s3d", 0)], "T902 axes[4] a5: is read by 2 studies (s4a, s4b), needs 3; let another one measure it"),
    ([reread("s4c", 4), reread("s3d", 2)],
     "T903 axes[4] a5: is read in one subtopic alone, as a3 is; one axis of a tree may be, by two methods"),
    ([infer("s1a", "s2a")], "T904 axes[1] a2: s1a, s2a are inferred, at most one reader may be; find figures"),
    ([infer("s1a"), *(reword("s1a", key, i, f"In {i + 2} of 7 runs, reading B {way}.")
                      for key, way in (("0", "rose"), ("1", "fell")) for i in range(3))],
     "T905 subtopics[0].studies[0].result.support s1a: is inferred and states figures; leave them out"),
    ([reread("s3c", 3, 0), reread("s1c", 0, 1)], "T906 subtopics 3 of 17 results (s1c, s2d, s3c) read two axes"),
    ([reread("s3d", 1, 4)],
     "T907 subtopics its results of two axes (s2d a1+a4, s3d a2+a5) share no axis and form no triangle"),
    ([reread("s4d", 4)], "T908 subtopics 2 controls (s1d, s2e), needs 3; add plausible studies that read no axis"),
    ([lambda d: [result(d, name)["texts"][key].pop() for name in ("s1a",) for key in "01"]],
     f"T910 {PLACE} s1a: its result has 2 wordings for each key, needs 3; a repetition shows another one"),
    ([reword("s1a", "1", 2, "In some third run of all, reading B fell.")],
     f"T911 {PLACE} s1a: text 1[2] is 1.28 times as long as text 0[1] (41 to 32 characters), at most 1.15"),
    ([reword("s1a", "1", 2, "In some 3rd run, reading B fell.")],
     f"T912 {PLACE} s1a: text 1[2] has 1 figure, text 0[0] has 0; give all as many"),
    ([reword("s1a", "1", 0, "In the first run, Reading B rose!")],
     f"T913 {PLACE} s1a: texts 0[0] and 1[0] say the same in the same words; reword one"),
    ([lambda d: d["axes"][2].update(poles=["up", "down", "Up"])], "T913 axes[2].poles a3: two of its poles"),
    ([reword("s1a", "1", 2, "Still, in a third, reading B fell.")],
     f"T914 {PLACE} s1a: text 1[2] says 'Still', which may betray the pole that is expected; leave it out"),
    ([lambda d: d["conclusions"][0]["texts"].update({"0": "All only, reading A rose."})], "T914 conclusions[0].texts"),
    ([lambda d: [axis.update(actual=0) for axis in d["axes"]]], "T915 axes the first pole is the actual one"),
    ([settle(0, 4)], "T916 axes a1, a5 can be settled without data, at most 1 of 5 axes may be"),
    ([lambda d: d["conclusions"].pop() and d["provenance"]["support"].pop()],
     "T917 axes[4] a5: is examined by 0 conclusion items, needs 1 to 3"),
    ([lambda d: d["conclusions"][1].update(needs=[["s1a"], ["s1c", "s1b"]])],
     f"T918 {NEEDS} c2: a choice of one study per group leaves a1 open; add a group of studies that all read it"),
    ([lambda d: d["conclusions"][1]["needs"].append(["s1a", "s4d"])],
     f"T919 {NEEDS}[2][1] c2: needs s4d, which reads none of its axes (a1, a2); leave it out"),
    ([reword("s1a", "0", i, f"In all {k} runs, reading B rose.") for i, k in enumerate((11, 12, 11))]
     + [reword("s1a", "1", i, f"In all {k} runs, reading B fell.") for i, k in enumerate((13, 14, 15))],
     f"T913 {PLACE} s1a: texts 0[0] and 0[2] say the same"),
    ([lambda d: d["subtopics"][3]["prerequisites"].append({"id": "s1", "because": "It does."})],
     "T201 subtopics[3].prerequisites[2] s4: prerequisite 's1' is already implied by another one"),
    ([lambda d: d["provenance"]["support"].pop(0)], "T205 provenance.support s1: has no entry in provenance.support"),
    ([lambda d: d["subtopics"][0]["hints"].__setitem__(3, "Think of nothing at all like it.")],
     "T501 subtopics[0].hints[3] s1: hint 4"),
    ([lambda d: d["subtopics"][0].pop("paraphrases")], "T305 subtopics 1 of 21 subtopics and studies"),
]  # fmt: skip


ALONGSIDE = {
    "T901": ("T205", "T902", "T917", "T909", "T305"),
    "T902": ("T903", "T918", "T919"),
    "T903": ("T918", "T919", "T902", "T909"),
    "T907": ("T903", "T902", "T906", "T909", "T918", "T919"),
    "T906": ("T902", "T909", "T918", "T919", "T903"),
    "T908": ("T909",),
    "T913": ("T920",),
    "T919": ("T918",),
    "T905": ("T920",),
}
"""Rules that the same change may break as well."""


@pytest.mark.parametrize(("breaks", "expected"), FAULTS)
def test_a_rule_fires_with_its_place(breaks: list[Break], expected: str):
    faults = told(broken(*breaks))
    assert [fault for fault in faults if expected in fault], faults
    assert {fault.split()[0] for fault in faults} <= {expected.split()[0], *ALONGSIDE.get(expected.split()[0], ())}


def test_a_hint_that_suggests_a_pole_is_found_by_its_vectors():
    document = clean_document()
    hints = document["subtopics"][0]["studies"][0]["hints"]
    hints[:2] = ["Think of a reading in some run.", "Think of a reading that rose."]
    leaks = [each for each in lint_tree(read(document), HashingEmbedder().embed) if each.code == "T921"]
    assert [(each.node, each.path) for each in leaks] == [("s1a", "subtopics[0].studies[0].hints[1]")]
    assert "'Think of a reading that rose.' is nearer to results of pole 0 of a2 than to others" in str(leaks[0])


def test_a_tree_that_is_easy_at_random_is_told_so():
    document = world_document([2] * 5, [[[i], [i], [(i + 1) % 5]] for i in range(5)], [[i] for i in range(5)])
    (fault,) = (fault for fault in lint_tree(read(document)) if fault.code == "T909")
    assert str(fault).startswith("at 2n turns 3 random studies read 2.")
    assert "the best ones 3: 0." in str(fault)


def test_courses_respect_prerequisites_and_run_no_study_twice():
    chain = read(world_document([2] * 5, [[[0], [0]], [[1]], [[2]], [[3, 4]]], [[i] for i in range(5)]))
    steps, best, chance = courses(chain)
    assert (steps, best) == (3, 3)  # the pair in the last subtopic is out of reach
    # second step: s1b or s2; third: both of s1 run leaves s2 alone, else s1b or s3
    assert chance == pytest.approx(0.5 * 2 + 0.5 * (0.5 * 2 + 0.5 * 3), abs=0.05)
    assert courses(chain) == (steps, best, chance)


def test_todo_texts_are_all_that_is_told_of_wording():
    document = clean_document() | {"axes": clean_document()["axes"], "topic": "TODO: the topic"}
    assert told(lint_tree(read(document))) == ["T301 topic topic: says 'TODO: the topic'; write the text"]


def test_every_fault_has_a_code_of_the_table_and_the_severity_of_its_rule():
    found = [fault for breaks, _ in FAULTS for fault in broken(*breaks)]
    assert {code for code in RULES if code > "T9"} - {fault.code for fault in found} == {"T909", "T921"}
    assert all(RULES[fault.code].severity == fault.severity and fault.path for fault in found)


def drop_axis(document: dict[str, Any]) -> None:
    """Leave out the last axis, its item and its readings, in a tree that rests on an abstract."""
    document["axes"].pop()
    document["conclusions"].pop()
    document["provenance"]["tier"] = "C"
    document["provenance"]["support"].pop()
    for name in ("s3d", "s4a", "s4b"):
        reread(name)(document)


@pytest.mark.parametrize(
    ("breaks", "allowed"),
    [
        ([reread("s3d", 0, 4)], "T907"),  # pairs that share an axis
        ([reread("s3a", 3, 2), reread("s3b", 0, 2)], "T907"),  # a triangle
        ([infer("s1a", "s1c", "s2c", "s3a", "s3d")], "T904"),  # one reader of each axis
        ([drop_axis], "T901"),
        ([settle(2)], "T916"),
        ([reread("s4c", 4)], "T903"),  # one axis is read in one subtopic
    ],
)
def test_what_the_rules_allow_is_no_fault(breaks: list[Break], allowed: str):
    assert allowed not in {fault.code for fault in broken(*breaks)}
