"""Choices of studies: those that an agent could have run next, and the information that each was expected to give."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.inquiry.courses import REPEAT, RETURN, VISIT, missing, visited
from inquitree_gym.inquiry.engine.rules import logged_rules
from inquitree_gym.inquiry.observer import Bools, Design, Model, Posterior, information

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.inquiry.vigilance import Exposure
    from inquitree_gym.log import Episode

NOTHING = 1e-9
"""Bits up to which no study tells anything."""


class Choice(NamedTuple):
    """A study that was run, beside the best one that could have been run instead."""

    bits: float
    """Expected information of its result about the world when it was chosen, in bits. See `information`."""
    most: float
    """Largest expected information of an open study, in bits."""
    best: int
    """The first open study with it."""
    free: bool
    """False if a forced move led to it."""

    @property
    def share(self) -> float | None:
        """Part of the largest information that was chosen, in [0, 1]. None if forced, or if nothing tells anything."""
        return self.bits / self.most if self.free and self.most > NOTHING else None


def open_studies(episode: Episode[InquiryEvent], design: Design, showings: Sequence[tuple[int, int]],
                 shown: Sequence[Exposure]) -> Bools:  # fmt: skip
    """Return the studies that could have been run in place of each showing, shape (showings, S).

    A study is open if the prerequisites of its subtopic were entered by the result before, and if the turns left
    sufficed: 3 for a study, 1 to repeat the last one, 4 to repeat another. The first study takes 2. A redo with a turn
    of its own takes one more, and a study that can be run again by its design takes 3.
    """
    rules = logged_rules(episode.header.rules)
    limit = rules.turn_limit(len(design.prerequisites))
    again = VISIT if rules.reruns == "match" else RETURN + rules.redo_turn
    runs = np.zeros((len(showings), len(design.reads)), np.int64)
    cost = np.full(runs.shape, VISIT)
    for i, (study, _) in enumerate(showings[:-1]):
        runs[i + 1 :, study] += 1
        cost[i + 1 :, study] = again
        cost[i + 1, study] = REPEAT + rules.redo_turn
    since = np.array([-1, *(each.turn for each in shown)])[: len(showings)]
    found = (missing(design, visited(design, runs)) == 0)[:, list(design.homes)]
    if limit is not None:
        found &= since[:, None] + cost <= limit
    found[np.arange(len(showings)), [study for study, _ in showings]] = True
    return np.asarray(found)


def choices_of(
    episode: Episode[InquiryEvent], model: Model, before: Posterior, showings: Sequence[tuple[int, int]],
    shown: Sequence[Exposure],
) -> tuple[Choice, ...]:  # fmt: skip
    """Return the choice that led to each showing.

    Args:
        episode: the episode.
        model: the assumptions of the observer.
        before: the belief before each showing, a row each.
        showings: study and outcome of each.
        shown: the same results in the log.
    """
    bits = information(model, before)
    reach = np.where(open_studies(episode, model.design, showings, shown), bits, -1.0)
    forced = [turn.turn for turn in episode.turns if turn.event.forced]
    spans = zip([0, *(each.turn for each in shown)], (each.turn for each in shown), strict=False)
    free = [not any(start < turn <= end for turn in forced) for start, end in spans]
    own = bits[np.arange(len(showings)), [study for study, _ in showings]]
    columns = (own.tolist(), reach.max(1).tolist(), reach.argmax(1).tolist(), free)
    return tuple(map(Choice._make, zip(*columns, strict=True)))


def mean_share(choices: Sequence[Choice]) -> float | None:
    """Return the mean share of the largest information, in [0, 1]. None without a choice that has one."""
    known = [each.share for each in choices if each.share is not None]
    return fmean(known) if known else None
