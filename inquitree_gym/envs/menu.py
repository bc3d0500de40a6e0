"""The discrete view: numbered texts to act with, and which of them a state allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Engine, Phase, State
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

REDO, EXPLORE, CONCLUDE = "redo the study", "explore new subtopic", "draw conclusion"
DECISIONS = (REDO, EXPLORE, CONCLUDE)

REMEMBERED = 1_024
"""Conclusions kept in memory, per menu."""

Mask = NDArray[np.bool_]
OnMasked = Literal["play", "raise"]


class MenuSize(NamedTuple):
    """Slots of a menu: a fixed number of actions for trees of different sizes."""

    subtopics: int
    studies: int

    @property
    def actions(self) -> int:
        """Number of actions: the slots, the three decisions and the conclusion."""
        return self.subtopics + self.studies + len(DECISIONS) + 1

    @classmethod
    def fitting(cls, trees: Sequence[Tree]) -> MenuSize:
        """Return the smallest menu that holds every one of ``trees``."""
        return cls(max(len(tree.subtopics) for tree in trees), max(len(tree.studies) for tree in trees))

    @classmethod
    def resolve(cls, size: tuple[int, int] | None, trees: Sequence[Tree]) -> MenuSize:
        """Return the slots asked for, or for None those that ``trees`` need.

        Raises:
            OptionError: ``size`` is not a pair of whole numbers from 1, or one of ``trees`` does not fit into it.
        """
        if size is None:
            return cls.fitting(trees)
        pair = isinstance(size, tuple | list) and len(size) == 2
        if not pair or not all(type(slots) is int and slots >= 1 for slots in size):
            raise OptionError(f"size is a pair of whole numbers from 1, slots for subtopics and studies, not {size!r}")
        found = cls(*size)
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


class Menu:
    """What can be said in the discrete view of one tree.

    Actions, in this order: one slot per subtopic, one per study (tree order; a slot that the tree does not fill is
    empty), the decisions `REDO`, `EXPLORE`, `CONCLUDE`, and the conclusion.
    """

    def __init__(self, tree: Tree, size: MenuSize | None = None) -> None:
        """Lay out the menu of ``tree``, in ``size`` slots or in just as many as it needs.

        Raises:
            OptionError: the tree does not fit into ``size``.
        """
        self.size = size or MenuSize.fitting([tree])
        self.size.check(tree)
        self.first_study = self.size.subtopics
        self.first_decision = self.size.subtopics + self.size.studies
        self.conclusion = self.first_decision + len(DECISIONS)
        self.texts = (
            *_padded([subtopic.text for subtopic in tree.subtopics], self.size.subtopics),
            *_padded([study.text for study in tree.studies], self.size.studies),
            *DECISIONS,
        )
        """The texts of all actions but the conclusion; empty for an empty slot."""
        studies = {study.id: k for k, study in enumerate(tree.studies)}
        self.evidence = tuple(
            tuple(dict.fromkeys(studies[name] for group in item.needs for name in group)) for item in tree.conclusions
        )
        """Per conclusion item the studies whose results bear on it."""
        self._claims = tuple((item.text, item.false_variants[0]) for item in tree.conclusions)
        self._concluded: dict[tuple[int, ...], str] = {}
        self._phases = _phase_masks(self, tree)

    def text(self, action: int, state: State) -> str:
        """Return what ``action``, 0 to ``size.actions`` − 1, says in ``state``."""
        return self.conclude(state) if action == self.conclusion else self.texts[action]

    def conclude(self, state: State) -> str:
        """Return the conclusion that believes what was seen last, as a numbered list.

        Per conclusion item: nothing while no result for it was seen, its first false variant if any of them was a fake
        when last seen, else its truth. So a fake that was believed costs.
        """
        conclusion = self._concluded.get(state.shown)
        if conclusion is None:
            conclusion = self._concluded[state.shown] = numbered(self._believed(state.shown))
            if len(self._concluded) > REMEMBERED:
                del self._concluded[next(iter(self._concluded))]
        return conclusion

    def _believed(self, shown: tuple[int, ...]) -> Iterator[str]:
        for claim, studies in zip(self._claims, self.evidence, strict=True):
            if seen := [shown[k] for k in studies if shown[k] >= 0]:
                yield claim[max(seen) > 0]

    def mask(self, engine: Engine, state: State) -> Mask:
        """Return which actions ``state`` allows, shape ``(size.actions,)``.

        At the topic every subtopic, locked ones too unless ``candidates="admissible"``; at a subtopic its studies; at a
        study everything, for any action ends it; at a result the decisions, and with ``explore="direct"`` the subtopics
        not yet visited; then the conclusion.
        """
        if state.phase == Phase.SUBTOPIC:
            mask = np.zeros(self.size.actions, np.bool_)
            mask[[self.first_study + k for k in engine.studies_of[state.subtopic]]] = True
            return mask
        mask = self._phases[state.phase].copy()
        if state.phase == Phase.TOPIC and engine.rules.candidates == "admissible":
            mask[:] = False
            mask[list(engine.admissible(state))] = True
        elif state.phase == Phase.RESULT and engine.rules.explore == "direct":
            mask[[i for i in engine.candidates(state) if not state.visited >> i & 1]] = True
        return mask


def check_on_masked(on_masked: str) -> None:
    """Check what is to be done about an action outside the mask.

    Raises:
        OptionError: it is none of `OnMasked`.
    """
    if on_masked not in get_args(OnMasked):
        raise OptionError(f"on_masked is one of {get_args(OnMasked)}, not {on_masked!r}")


def numbered(claims: Iterator[str] | Sequence[str]) -> str:
    """Return a numbered list, one claim per line."""
    return "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, 1))


def _padded(texts: list[str], slots: int) -> list[str]:
    return texts + [""] * (slots - len(texts))


def _phase_masks(menu: Menu, tree: Tree) -> tuple[Mask, ...]:
    """Return per phase what it allows whatever else the state is."""
    masks = np.zeros((len(Phase), menu.size.actions), np.bool_)
    masks[Phase.TOPIC, : len(tree.subtopics)] = True
    masks[Phase.STUDY, :-1] = [bool(text) for text in menu.texts]
    masks[Phase.STUDY, menu.conclusion] = True
    masks[Phase.RESULT, menu.first_decision : menu.conclusion] = True
    masks[Phase.CONCLUSION :, menu.conclusion] = True
    return tuple(masks)
