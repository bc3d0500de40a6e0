"""Sheets over the claims of an outcome: the order of the statements, and their score.

The statements of a claim are the claim itself, number 0, and its contraries. The seed of an episode and the level draw
the order of their letters, claim by claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from inquitree_gym.seeds import draw_orders
from inquitree_gym.sheets import Layout, Sheet
from inquitree_gym.trees.disclosure import LEVELS, Level, OutcomeClaim

LAYOUT = 1 << 32
"""Word that extends a seed's hash to draw the order of the statements."""


def statements(claim: OutcomeClaim) -> tuple[str, ...]:
    """Return the statements of a claim in file order: what was found, then its contraries."""
    return (claim.text, *claim.contraries)


def draw_layout(claims: Sequence[OutcomeClaim], seed: int, level: Level) -> Layout:
    """Return the order of each claim's statements at a level: by the hash of seed, level, claim and statement."""
    return draw_orders([len(statements(claim)) for claim in claims], seed, LAYOUT, LEVELS.index(level))


def sheet_score(claims: Sequence[OutcomeClaim], sheet: Sheet) -> float:
    """Return the mean over claims of 1 for the claim, -1/(k - 1) for one of its k - 1 contraries, and 0 for none."""
    worth = [
        0.0 if choice is None else 1.0 if choice == 0 else -1 / len(claim.contraries)
        for claim, choice in zip(claims, sheet.choices, strict=True)
    ]
    return sum(worth) / len(claims)


def beliefs(claims: Sequence[OutcomeClaim], sheet: Sheet) -> tuple[float | None, ...]:
    """Return the belief in each claim, in [0, 1]: the probability given to it. None where it was left out.

    What is not given to a contrary is shared evenly by the k - 1 other statements. A letter alone is given 1.
    """
    given = sheet.probabilities or (None,) * len(claims)
    return tuple(
        None if choice is None else _belief(choice, 1.0 if probability is None else probability, len(claim.contraries))
        for claim, choice, probability in zip(claims, sheet.choices, given, strict=True)
    )


def _belief(choice: int, probability: float, contraries: int) -> float:
    return probability if choice == 0 else (1 - probability) / contraries


def brier(sheet: Sheet) -> float | None:
    """Return the mean squared difference of probability and outcome, in [0, 1]. None without a probability."""
    given = [
        (probability - (choice == 0)) ** 2
        for choice, probability in zip(sheet.choices, sheet.probabilities, strict=False)
        if choice is not None and probability is not None
    ]
    return sum(given) / len(given) if given else None


def brier_skill(claims: Sequence[OutcomeClaim], sheet: Sheet) -> float | None:
    """Return 1 - B/B₀, where B₀ is the Brier score of the same answers with the probability 1/k, k statements a claim.

    1 is best, 0 as good as chance, and below 0 worse. None without a probability.
    """
    even = tuple(
        None if probability is None else 1 / (1 + len(claim.contraries))
        for claim, probability in zip(claims, sheet.probabilities, strict=False)
    )
    ours, chance = brier(sheet), brier(Sheet(sheet.choices, even))
    return None if ours is None or chance is None else 1 - ours / chance
