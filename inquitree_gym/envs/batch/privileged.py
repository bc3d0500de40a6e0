"""What agents must not see of an `InquiryBatchEnv`: every turn taken with the engine, too, one after the other."""

from __future__ import annotations

from typing import Any

from inquitree_gym.engine import Phase, Reading
from inquitree_gym.envs.batch.encoding import Ints
from inquitree_gym.envs.batch.kernel import Core
from inquitree_gym.envs.runtime import Transition, privileged_info


class Witness:
    """Follows inquiries on the engine, with the matcher's readings."""

    def __init__(self, inquiries: int) -> None:
        """Follow none yet."""
        self._steps: list[Transition | None] = [None] * inquiries

    def begin(self, core: Core, rows: Ints) -> None:
        """Note that episodes start."""
        for row in rows.tolist():
            engine = core.tables.plays[core.play[row]].reader.play.engine
            self._steps[row] = Transition(Reading(), engine.start(core.seeds.of(row)))

    def step(self, core: Core, actions: Ints) -> None:
        """Take a turn in every inquiry that is not over, before ``core`` takes it."""
        for row, action in enumerate(actions.tolist()):
            before = self._steps[row]
            if before is not None and before.event.state.phase != Phase.END:
                compiled, state = core.tables.plays[core.play[row]], before.event.state
                reading = compiled.reader.play.matcher.read(state, compiled.menu.text(action, state))
                self._steps[row] = Transition(reading, compiled.reader.play.engine.advance(state, reading))

    def infos(self, core: Core, row: int) -> dict[str, Any]:
        """Return what an agent must not see of an inquiry, as `InquiryEnv` says it."""
        step = self._steps[row]
        if step is None:
            return {}
        return {"privileged": privileged_info(step, core.tables.plays[core.play[row]].reader.play.engine.turn_limit)}
