"""Third stage of an audit: the checker answers the exam closed-book and open-book, and marks fakes.

Closed-book, it sees the topic alone; a right answer comes from memory or a guess (recall). Open-book, it sees the first
wording of every true result of a drawn world (sound). Among results with fakes it marks those that it takes for fake
(tellable). Worlds, orders of statements and fakes are drawn from the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from inquitree_gym.authoring.audit import PROMPTS, Answered, AuditQuestion, BadReplyError, known, parsed
from inquitree_gym.authoring.findings import Finding
from inquitree_gym.judging.asking import code_of, fence_of, secret_of
from inquitree_gym.seeds import draw_orders, hash_text
from inquitree_gym.sheets import Layout, lettered, read_sheet
from inquitree_gym.trees.fields import FrozenModel
from inquitree_gym.trees.schema import Tree
from inquitree_gym.trees.worlds import World, actual_world, in_world, outcomes_in, world_id, world_set

FAKE_SHARE = 0.3
"""Probability that a result is fake: level 3 of the game."""
SURPRISE = 0.05
"""Probability of as many right guesses up to which right answers without a result are reported as recall."""


class _Marks(FrozenModel):
    fakes: tuple[str, ...]
    true: tuple[str, ...] = Field(default=())


class _Shown(NamedTuple):
    study: str
    text: str
    is_fake: bool


def exam_questions(tree: Tree, count: int = 2, seed: int = 0) -> Iterator[AuditQuestion]:
    """Yield the question of recall, unless the tree was made up, and two for each of ``count`` drawn worlds."""
    rng = np.random.default_rng([seed, hash_text(tree.id)])
    if tree.axes[0].actual is not None:
        yield _recall(tree, seed)
    for _ in range(count):
        world = tuple(int(rng.choice(poles)) for poles in world_set(tree, "any").poles)
        yield _sound(tree, world, seed)
        yield _tellable(tree, world, rng)


def _recall(tree: Tree, seed: int) -> AuditQuestion:
    layout, items = _exam(tree, seed, "recall")
    prompt = PROMPTS.render("audit_recall", fence=_fence(items), topic=tree.topic, items=items)

    def judge(choices: Sequence[int | None], true: Sequence[int]) -> Answered:
        right = sum(choice == option for choice, option in zip(choices, true, strict=True))
        chance = _chance_of_at_least(right, [1 / len(item.options) for item in tree.conclusions])
        why = (
            f"{right} of {len(true)} items were answered right without a result; guessing does as well in "
            f"{100 * chance:.2g} % of exams"
        )
        found = Finding(node="topic", text=tree.topic, rule="recall", severity="warning", why=why)
        return Answered([found] if chance <= SURPRISE else [], {"recall": (right, len(true))})

    return AuditQuestion("recall", prompt, _reader(tree, layout, actual_world(tree), judge))


def _sound(tree: Tree, world: World, seed: int) -> AuditQuestion:
    name = world_id(world)
    layout, items = _exam(tree, seed, name)
    results = "\n".join(f"{study.id}: {study.results[0]}" for study in in_world(tree, world).studies)
    prompt = PROMPTS.render("audit_sound", fence=_fence(items, results), topic=tree.topic, results=results, items=items)

    def judge(choices: Sequence[int | None], true: Sequence[int]) -> Answered:
        found = []
        for item, choice, option in zip(tree.conclusions, choices, true, strict=True):
            if choice != option:
                chosen = "no statement" if choice is None else f"'{item.options[choice]}'"
                why = f"from all true results of world {name} the checker chose {chosen}"
                found.append(
                    Finding(node=item.id, text=item.options[option], rule="unsound", severity="warning", why=why)
                )
        return Answered(found, {"sound": (len(true) - len(found), len(true))})

    return AuditQuestion(f"sound in {name}", prompt, _reader(tree, layout, world, judge))


def _tellable(tree: Tree, world: World, rng: np.random.Generator) -> AuditQuestion:
    shown = list(_showings(tree, world, rng))
    secret = secret_of(*shown)
    coded = {code_of("R", i, secret): each for i, each in enumerate(shown, 1)}
    results = "\n".join(f"{code} {each.text}" for code, each in coded.items())
    prompt = PROMPTS.render("audit_fakes", fence=fence_of(secret), topic=tree.topic, results=results, share=FAKE_SHARE)
    name = world_id(world)
    return AuditQuestion(f"fakes in {name}", prompt, lambda reply: _read_marks(reply, coded, name))


def _showings(tree: Tree, world: World, rng: np.random.Generator) -> Iterator[_Shown]:
    """Yield a result of each study in the order of the tree. A control has no fake."""
    for study in in_world(tree, world).studies:
        fakes = study.results[1:]
        is_fake = bool(fakes) and rng.random() < FAKE_SHARE
        yield _Shown(study.id, fakes[rng.integers(len(fakes))] if is_fake else study.results[0], is_fake)


def _read_marks(reply: str, coded: Mapping[str, _Shown], world: str) -> Answered:
    said = parsed(reply, _Marks)
    marked, true = ({code.strip() for code in codes if known(coded, code)} for codes in (said.fakes, said.true))
    if both := marked & true:
        raise BadReplyError(f"{', '.join(sorted(both))} is called fake and true", "contradictory")
    if lacking := coded.keys() - marked - true:
        raise BadReplyError(f"{', '.join(sorted(lacking))} is called neither fake nor true")
    found = []
    for code, each in coded.items():
        if each.is_fake != (code in marked):
            rule, told = (
                ("untellable", "a fake was taken for true")
                if each.is_fake
                else ("suspect", "a true result was taken for fake")
            )
            why = f"{told} among the results of world {world}"
            found.append(Finding(node=each.study, text=each.text, rule=rule, severity="note", why=why))
    fakes = [code for code, each in coded.items() if each.is_fake]
    hits, alarms = len(marked.intersection(fakes)), len(marked.difference(fakes))
    return Answered(found, {"hits": (hits, len(fakes)), "false alarms": (alarms, len(coded) - len(fakes))})


def _exam(tree: Tree, seed: int, which: str) -> tuple[Layout, str]:
    """Return the order of the statements of each item, and the lettered items."""
    layout = draw_orders(
        [len(item.options) for item in tree.conclusions], seed, hash_text(f"{tree.id}\n{which}\naudit")
    )
    items = (
        lettered([item.options[option] for option in order], number)
        for number, (item, order) in enumerate(zip(tree.conclusions, layout, strict=True), 1)
    )
    return layout, "\n\n".join(items)


def _reader(
    tree: Tree, layout: Layout, world: World, judge: Callable[[Sequence[int | None], Sequence[int]], Answered]
) -> Callable[[str], Answered]:
    """Return the reading of a reply to an exam. ``judge`` gets the chosen options and those that hold."""
    true = [next(outcomes_in(tree, axes, world)) for axes in tree.asks]

    def read(reply: str) -> Answered:
        sheet, notes = read_sheet(reply, layout)
        if notes:
            changed = any("different ones" in note.problem for note in notes)
            raise BadReplyError("; ".join(map(str, notes)), "contradictory" if changed else "unreadable")
        return judge(sheet.choices, true)

    return read


def _fence(*texts: str) -> str:
    return fence_of(secret_of(*texts))


def _chance_of_at_least(right: int, chances: Sequence[float]) -> float:
    """Return the probability of so many right guesses or more (Poisson-binomial distribution)."""
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    return math.fsum(distribution[right:].tolist())
