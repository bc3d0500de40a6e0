"""Agreement of two sets of labels."""

from __future__ import annotations

from collections.abc import Iterable


def cohen_kappa(pairs: Iterable[tuple[str, str]]) -> float | None:
    """Return Cohen's κ of pairs of labels. None if all labels are one and the same, or there are none."""
    from sklearn.metrics import cohen_kappa_score

    pairs = list(pairs)
    if len({label for pair in pairs for label in pair}) < 2:
        return None
    one, other = zip(*pairs, strict=True)
    return float(cohen_kappa_score(one, other))
