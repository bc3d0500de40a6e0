"""Expected score of an agent that knows the variables and guesses the relations between them."""

from __future__ import annotations

from math import comb

from inquitree_gym.errors import OptionError


def chance_f1(claims: int, right: float = 0.5, wrong: float = 0.5) -> float:
    """Return E[F1] of a projection that guesses each of M true claims independently of the others.

    A claim is stated correctly with probability p, as a contrary with probability q, and otherwise left out. So the
    number of stated claims is n ~ Binomial(M, p + q), and of these k ~ Binomial(n, p/(p + q)) are right. Without
    extraneous claims TP = k, FP = n − k and RE = M (see `projection_score`), so that P = k/n, R = k/M and

        F1 = 2PR/(P + R) = 2k/(n + M),    E[F1 | n] = 2 · p/(p + q) · n/(n + M).

    The sum over n is E[F1] = 2 · p/(p + q) · Σ_n Binomial(n; M, p + q) · n/(n + M). If every claim is stated, n = M and
    E[F1] = E[k/M] = p for any M: a coin that knows the variables and guesses directions earns 0.5.

    Args:
        claims: number of true claims M, from 1.
        right: probability p that a claim is stated correctly.
        wrong: probability q that its contrary is stated, at most 1 − p.

    Raises:
        OptionError: a value is out of range.

    >>> chance_f1(5), round(chance_f1(5, 1 / 3, 1 / 3), 4)
    (0.5, 0.3895)
    """
    if claims < 1 or right < 0 or wrong < 0 or right + wrong > 1 + 1e-12:
        raise OptionError(
            f"chance_f1 takes a number of claims from 1 and two probabilities whose sum is at most 1, "
            f"not {claims}, {right} and {wrong}"
        )
    stated = min(1.0, right + wrong)
    if not stated:
        return 0.0
    share = sum(_binomial(n, claims, stated) * n / (n + claims) for n in range(claims + 1))
    return 2 * right / stated * share


def _binomial(count: int, trials: int, probability: float) -> float:
    return comb(trials, count) * probability**count * (1 - probability) ** (trials - count)
