"""What the log of the toy kind holds."""

from __future__ import annotations

from typing import Any

from inquitree_gym.log import Setup, TurnEvent


class ToyEvent(TurnEvent):
    """Words that were heard in an action; None if the judge did not say."""

    heard: tuple[str, ...] | None
    left: int

    @property
    def unscored(self) -> bool:
        return self.heard is None


class ToySetup(Setup):
    """The judge alone."""

    judge: dict[str, Any]


EVENT = ToyEvent
SETUP = ToySetup
