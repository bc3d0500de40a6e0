"""The rules of an inquiry: a pure state machine over integers.

It knows no Gymnasium, text, clock or global randomness. `Engine.advance` takes a frozen `State` and the `Reading` of an
action, and returns a frozen `Event` with the next state and the outcome. Subtopics are identified by their index in the
tree, studies by their index over the whole tree, subtopic by subtopic.
"""

from inquitree_gym.engine.machine import Engine
from inquitree_gym.engine.rules import Rules
from inquitree_gym.engine.ruleset import RuleSet
from inquitree_gym.engine.values import Decision, Event, Kind, Phase, Reading, Reason, State, event_values
from inquitree_gym.trees.hashing import seed_of_agent, splitmix64

__all__ = [
    "Decision",
    "Engine",
    "Event",
    "Kind",
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
