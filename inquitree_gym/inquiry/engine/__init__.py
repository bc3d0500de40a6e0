"""The rules of an inquiry: a pure state machine over integers.

It knows no Gymnasium, text, clock or global randomness. `transition.advance` has every rule once: it takes rows of
integers one turn further. `Engine.advance` calls it for one inquiry: it takes a `State` and the `Reading` of an action,
and returns the `Event`, with the next state. Subtopics are identified by their index in the
tree, studies by their index over the whole tree, subtopic by subtopic.
"""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.inquiry.engine.machine import Engine
    from inquitree_gym.inquiry.engine.rules import Rules
    from inquitree_gym.inquiry.engine.values import (
        Decision,
        Event,
        ObservationKind,
        Phase,
        Reading,
        Reason,
        State,
        event_values,
    )
    from inquitree_gym.ruleset import RuleSet
    from inquitree_gym.seeds import seed_of_agent, splitmix64

__all__ = [
    "Decision",
    "Engine",
    "Event",
    "ObservationKind",
    "Phase",
    "Reading",
    "Reason",
    "RuleSet",
    "Rules",
    "State",
    "event_values",
    "seed_of_agent",
    "splitmix64",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "inquiry.engine.machine": "Engine",
        "inquiry.engine.rules": "Rules",
        "inquiry.engine.values": ("Decision Event ObservationKind Phase Reading Reason State event_values"),
        "ruleset": "RuleSet",
        "seeds": "seed_of_agent splitmix64",
    },
)
