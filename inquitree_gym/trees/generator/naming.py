"""Invented names: pronounceable, unlike words, and rarely the same twice."""

from __future__ import annotations

from inquitree_gym.trees.generator.rng import Lots

_SYLLABLES = (
    "b br c cr d dr f fl fr g gl gr h j k kl kr l m n p pl pr qu r s sc sk sl sn st t th tr v vr w y z zh",
    "a e i o u ae ei ia",
    "b d f g k l ld lf lm lt lv m mb md mp n nd ng nt nv p r rb rd rf rg rk rl rm rn rv s sk sp st t th v x z",
    "a e i o u",
    "b d f k l lk m n nt p r rd rk rn s sk st t x z",
)
"""What may stand at each place of a name: 1.3 million names."""
_PLACES = tuple(tuple(choices.split()) for choices in _SYLLABLES)


class Names:
    """Names of one tree, none of them given twice."""

    def __init__(self, lots: Lots) -> None:
        self._lots = lots
        self._given: set[str] = set()

    def new(self) -> str:
        """Return a name of two syllables or so, all small letters."""
        while True:
            name = "".join(self._lots.pick(choices) for choices in _PLACES)
            if name not in self._given:
                self._given.add(name)
                return name
