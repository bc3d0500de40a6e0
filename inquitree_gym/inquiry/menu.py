"""Menus: the numbered texts of the discrete view, and the actions that a state allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Mask
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.decisions import TOKENS
from inquitree_gym.inquiry.engine import Engine, Phase, State
from inquitree_gym.trees import Tree

REDO, EXPLORE, CONCLUDE = TOKENS
DECISIONS = (REDO, EXPLORE, CONCLUDE)

MAX_CACHED_CONCLUSIONS = 1_024
"""Conclusion texts cached per menu."""

_SUBTOPIC, _CONCLUSION = Phase.SUBTOPIC, Phase.CONCLUSION  # looked up once, for speed

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
        """Return the smallest size that holds every one of ``trees``."""
        return cls(max(len(tree.subtopics) for tree in trees), max(len(tree.studies) for tree in trees))

    @classmethod
    def resolve(cls, size: tuple[int, int] | None, trees: Sequence[Tree]) -> MenuSize:
        """Return ``size`` checked against ``trees``, or for None the smallest that holds them.

        Raises:
            OptionError: ``size`` is not a pair of integers from 1, or one of ``trees`` does not fit into it.
        """
        if size is None:
            return cls.fitting(trees)
        pair = isinstance(size, tuple | list) and len(size) == 2
        if not pair or not all(type(slots) is int and slots >= 1 for slots in size):
            raise OptionError(f"size must be a pair of integers from 1, slots for subtopics and studies, got {size!r}")
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
    """The actions of the discrete view of one tree.

    Actions, in this order: one slot per subtopic and one per study, in tree order with empty slots at the end,
    the decisions `REDO`, `EXPLORE`, `CONCLUDE`, and the conclusion.
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
        self.conclusion = self.first_decision + len(DECISIONS)
        self.texts = (
            *_padded([subtopic.text for subtopic in tree.subtopics], self.size.subtopics),
            *_padded([study.text for study in tree.studies], self.size.studies),
            *DECISIONS,
        )
        """Texts of all actions but the conclusion. An empty slot has an empty text."""
        studies = {study.id: k for k, study in enumerate(tree.studies)}
        self.evidence = tuple(
            tuple(dict.fromkeys(studies[name] for group in item.needs for name in group)) for item in tree.conclusions
        )
        """Indices of the studies whose results bear on each conclusion item."""
        self._claims = tuple(item.options[:2] for item in tree.conclusions)
        self._conclusions: dict[tuple[int, ...], str] = {}
        self.masks: NDArray[np.int8] = np.concatenate([self._make_phase_masks(tree), self._make_study_masks(tree)])
        """Open actions, 0 or 1: a row for each phase, then for each subtopic."""

    def text(self, action: int, state: State) -> str:
        """Return the text of ``action``, 0 to ``size.actions`` − 1, in ``state``. Only a conclusion is concluded."""
        if action < self.conclusion:
            return self.texts[action]
        return self.conclude(state) if state.phase == _CONCLUSION else ""

    def conclude(self, state: State) -> str:
        """Return a conclusion, as a numbered list, that trusts the last result seen of each study.

        A conclusion item is left out while none of its results has been seen. It is stated as its first false variant
        if any of them was a fake when last seen, else as the truth. So believing a fake costs reward.
        """
        conclusion = self._conclusions.get(state.shown)
        if conclusion is None:
            conclusion = self._conclusions[state.shown] = numbered(self._believed(state.shown))
            if len(self._conclusions) > MAX_CACHED_CONCLUSIONS:
                del self._conclusions[next(iter(self._conclusions))]
        return conclusion

    def _believed(self, shown: tuple[int, ...]) -> Iterator[str]:
        for claim, said in zip(self._claims, self._said(shown), strict=True):
            if said:
                yield claim[said - 1]

    def pattern(self, state: State) -> int:
        """Return what `conclude` says of each item, 0 for nothing, 1 for the truth, 2 for a falsehood, in base 3."""
        return sum(said * 3**i for i, said in enumerate(self._said(state.shown)))

    def _said(self, shown: tuple[int, ...]) -> Iterator[int]:
        for studies in self.evidence:
            yield max(1 + min(shown[k], 1) for k in studies)

    def mask(self, engine: Engine, state: State) -> Mask:
        """Return the actions that ``state`` allows, a new bool array of shape ``(size.actions,)``. See `mask_int8`."""
        return self.mask_int8(engine, state).view(np.bool_)

    def mask_int8(self, engine: Engine, state: State) -> NDArray[np.int8]:
        """Return the actions that ``state`` allows, a new array of 0 and 1 of shape ``(size.actions,)``.

        TOPIC: every subtopic, including locked ones. SUBTOPIC: its studies. STUDY: everything, since any action ends
        it. RESULT: the decisions. CONCLUSION and END: the conclusion.
        """
        row = len(Phase) + state.subtopic if state.phase == _SUBTOPIC else state.phase
        mask: NDArray[np.int8] = self.masks[row].copy()
        return mask

    def _make_phase_masks(self, tree: Tree) -> NDArray[np.int8]:
        masks = np.zeros((len(Phase), self.size.actions), np.int8)
        masks[Phase.TOPIC, : len(tree.subtopics)] = 1
        masks[Phase.STUDY, :-1] = [bool(text) for text in self.texts]
        masks[Phase.STUDY, self.conclusion] = 1
        masks[Phase.RESULT, self.first_decision : self.conclusion] = 1
        masks[Phase.CONCLUSION :, self.conclusion] = 1
        return masks

    def _make_study_masks(self, tree: Tree) -> NDArray[np.int8]:
        masks = np.zeros((len(tree.subtopics), self.size.actions), np.int8)
        first = self.first_study
        for mask, subtopic in zip(masks, tree.subtopics, strict=True):
            mask[first : first + len(subtopic.studies)] = 1
            first += len(subtopic.studies)
        return masks


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
