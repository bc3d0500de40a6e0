"""Menus: the numbered texts of the discrete view, and the actions that a state allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Mask
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.decisions import TOKENS
from inquitree_gym.inquiry.engine import Engine, Phase, Rules, State
from inquitree_gym.inquiry.engine.rows import Slots
from inquitree_gym.sheets import LETTERS
from inquitree_gym.trees import Tree

REDO, EXPLORE, CONCLUDE = TOKENS
DECISIONS = (REDO, EXPLORE, CONCLUDE)

OPTIONS = len(LETTERS)
"""Actions that name an option of the exam."""
MAX_AXIS_SLOTS = 12

_SUBTOPIC, _EXAM = Phase.SUBTOPIC, Phase.EXAM  # looked up once, for speed

OnMasked = Literal["play", "raise"]


class MenuSize(NamedTuple):
    """Slots of a menu: a fixed number of actions and of entries in a tally for trees of different sizes."""

    subtopics: int
    studies: int
    axes: int = MAX_AXIS_SLOTS
    """Axes of the exam. They take no actions."""

    @property
    def actions(self) -> int:
        """Number of actions: the slots, the three decisions, nothing, and the options of the exam."""
        return self.subtopics + self.studies + len(DECISIONS) + 1 + OPTIONS

    @classmethod
    def fitting(cls, trees: Sequence[Tree]) -> MenuSize:
        """Return the smallest size that holds every one of ``trees``."""
        slots = [Slots.of(tree) for tree in trees]
        return cls(max(s.subtopics for s in slots), max(s.studies for s in slots), max(s.axes for s in slots))

    @classmethod
    def resolve(cls, size: tuple[int, ...] | None, trees: Sequence[Tree]) -> MenuSize:
        """Return ``size`` checked against ``trees``, or for None the smallest that holds them.

        Raises:
            OptionError: ``size`` is not a pair of integers from 1, or one of ``trees`` does not fit into it.
        """
        if size is None:
            return cls.fitting(trees)
        if isinstance(size, cls):
            for tree in trees:
                size.check(tree)
            return size
        pair = isinstance(size, tuple | list) and len(size) == 2
        if not pair or not all(type(slots) is int and slots >= 1 for slots in size):
            raise OptionError(f"size must be a pair of integers from 1, slots for subtopics and studies, got {size!r}")
        found = cls(size[0], size[1], max(MAX_AXIS_SLOTS, size[0], cls.fitting(trees).axes))
        for tree in trees:
            found.check(tree)
        return found

    def check(self, tree: Tree) -> None:
        """Check that ``tree`` fits.

        Raises:
            OptionError: it has more subtopics or studies than there are slots.
        """
        needed = MenuSize.fitting([tree])
        if needed.subtopics > self.subtopics or needed.studies > self.studies:
            raise OptionError(
                f"{tree.id} has {needed.subtopics} subtopics and {needed.studies} studies, and the menu has "
                f"{self.subtopics} and {self.studies} slots for them; make it with size=({needed.subtopics}, "
                f"{needed.studies}) or more"
            )
        if needed.axes > self.axes:
            raise OptionError(
                f"{tree.id} has {needed.axes} axes, and the trees of the environment {self.axes} at most; make it with "
                f"size=({self.subtopics}, {self.studies}) for up to {MAX_AXIS_SLOTS}"
            )


class Menu:
    """The actions of the discrete view of one tree.

    Actions, in this order: one slot per subtopic and one per study, in tree order with empty slots at the end, the
    decisions `REDO`, `EXPLORE`, `CONCLUDE`, nothing, and the options of an item in file order. Nothing stands for an
    empty conclusion, and leaves an item of the exam out.
    """

    def __init__(self, tree: Tree, size: MenuSize | None = None) -> None:
        """Lay out the menu of ``tree`` in ``size`` slots, by default as few as possible.

        Raises:
            OptionError: the tree does not fit into ``size``.
        """
        self.size = size or MenuSize.fitting([tree])
        self.size.check(tree)
        self.first_study = self.size.subtopics
        self.first_decision = self.size.subtopics + self.size.studies
        self.nothing = self.first_decision + len(DECISIONS)
        self.first_option = self.nothing + 1
        self.texts = (
            *_padded([subtopic.text for subtopic in tree.subtopics], self.size.subtopics),
            *_padded([study.text for study in tree.studies], self.size.studies),
            *DECISIONS,
            "",
            *LETTERS[:OPTIONS],
        )
        """Texts of all actions. An empty slot has an empty text, as has nothing."""
        self.masks: NDArray[np.int8] = np.concatenate(
            [self._make_phase_masks(tree), self._make_study_masks(tree), self._make_item_masks(tree)]
        )
        """Open actions, 0 or 1: a row for each phase, then for each subtopic, then for each conclusion item."""

    def mask(self, engine: Engine, state: State) -> Mask:
        """Return the actions that ``state`` allows, a new bool array of shape ``(size.actions,)``. See `mask_int8`."""
        return self.mask_int8(engine, state).view(np.bool_)

    def mask_int8(self, engine: Engine, state: State) -> NDArray[np.int8]:
        """Return the actions that ``state`` allows, a new array of 0 and 1 of shape ``(size.actions,)``.

        TOPIC: every subtopic, including locked ones. SUBTOPIC: its studies. STUDY: everything but options, since any
        action ends it. RESULT: the decisions. EXAM: nothing and the options of the item. CONCLUSION and END: nothing.
        """
        phase = state.phase
        row = len(Phase) + state.subtopic if phase == _SUBTOPIC else int(phase)
        if phase == _EXAM:
            row = len(Phase) + engine.n + state.item
        mask: NDArray[np.int8] = self.masks[row].copy()
        return mask

    def _make_phase_masks(self, tree: Tree) -> NDArray[np.int8]:
        masks = np.zeros((len(Phase), self.size.actions), np.int8)
        masks[Phase.TOPIC, : len(tree.subtopics)] = 1
        masks[Phase.STUDY, : self.nothing] = [bool(text) for text in self.texts[: self.nothing]]
        masks[Phase.STUDY, self.nothing] = 1
        masks[Phase.RESULT, self.first_decision : self.nothing] = 1
        masks[Phase.CONCLUSION :, self.nothing] = 1
        return masks

    def _make_study_masks(self, tree: Tree) -> NDArray[np.int8]:
        masks = np.zeros((len(tree.subtopics), self.size.actions), np.int8)
        first = self.first_study
        for mask, subtopic in zip(masks, tree.subtopics, strict=True):
            mask[first : first + len(subtopic.studies)] = 1
            first += len(subtopic.studies)
        return masks

    def _make_item_masks(self, tree: Tree) -> NDArray[np.int8]:
        masks = np.zeros((len(tree.conclusions), self.size.actions), np.int8)
        masks[:, self.nothing] = 1
        for mask, item in zip(masks, tree.conclusions, strict=True):
            mask[self.first_option : self.first_option + len(item.options)] = 1
        return masks


def check_exam(rules: Rules) -> None:
    """Check that rules have an exam.

    Raises:
        OptionError: they have none.
    """
    if rules.exam == "none":
        raise OptionError(
            "a discrete view answers the exam, and these rules have none (exam='none', as in rules='paper'); play them "
            "in text, or pass exam='items'"
        )


def item_options(options: Mapping[str, Any] | None, rules: Rules) -> dict[str, Any]:
    """Return options of a reset with an exam that asks for one item at a time.

    Raises:
        OptionError: they ask for another exam.
    """
    given = {"exam": "items", **(options or {})}
    if given.get("rules") == "paper" and "exam" not in (options or {}):
        given["exam"] = "none"
    if given["exam"] != "items":
        check_exam(rules.override({"exam": given["exam"]}))
        raise OptionError(
            f"a discrete view takes the exam item by item; exam must be 'items', got {given['exam']!r:.80}"
        )
    return given


def check_on_masked(on_masked: str) -> None:
    """Check the value of ``on_masked``.

    Raises:
        OptionError: it is none of `OnMasked`.
    """
    if on_masked not in get_args(OnMasked):
        raise OptionError(f"on_masked must be one of {get_args(OnMasked)}, got {on_masked!r}")


def numbered(claims: Iterator[str] | Sequence[str]) -> str:
    """Return a numbered list, one claim per line."""
    return "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, 1))


def _padded(texts: list[str], slots: int) -> list[str]:
    return texts + [""] * (slots - len(texts))
