"""The rules of an inquiry (DESIGN section 3): a pure state machine over integers.

No Gymnasium, no text, no clock, no global randomness. `Engine.advance` takes a frozen `State` and the `Reading` of an
action and returns a frozen `Event` that holds the next state and what happened. Subtopics are named by their index in
the tree; studies by their index over the whole tree, subtopic by subtopic.
"""

from inquitree_gym.engine.machine import Engine, splitmix64
from inquitree_gym.engine.rules import Rules
from inquitree_gym.engine.values import Decision, Event, Kind, Phase, Reading, Reason, State

__all__ = ["Decision", "Engine", "Event", "Kind", "Phase", "Reading", "Reason", "Rules", "State", "splitmix64"]
