"""Settings of a study of the toy kind."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from inquitree_gym.kind_settings import KindSettings, as_tuple


class ToySettings(KindSettings):
    """Settings of a study of the toy kind."""

    grid: ClassVar[tuple[str, ...]] = ("shown",)

    shown: Annotated[tuple[int, ...], BeforeValidator(as_tuple)] = Field(
        default=(0,), description="Numbers of words that are shown at the start."
    )
    loud: bool = Field(default=False, description="Take a word in capitals alone.")

    def all_rules(self) -> dict[str, Any]:
        return {"shown": 0, "loud": self.loud}


SETTINGS = ToySettings
