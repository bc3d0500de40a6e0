"""How subtopics ask and what may be concluded, by kind of question.

Names in braces: ``y`` is the outcome in full, ``ys`` in short, ``noun`` without its ``thing``. ``x`` is the first
cause, a factor in full, ``xs`` in short, ``xn`` without its thing; ``ms`` and ``mn`` the last, a mediator or modifier;
``lists`` and ``listn`` all of them. A capital stands for a capital. What is concluded from one outcome is worded unlike
what is concluded from any other, so that a judge can tell them apart.
"""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """One way to ask."""

    text: str
    near: str
    """Hint 3: close to the text, and not the text."""


TOPIC = (
    "Among the {subject} of {scene}, what acts on what, how strongly, in which direction, and by which route, "
    "and where is there no influence at all?"
)
"""The open question over the whole tree."""

OPENERS = (
    "Start simple.",
    "Look nearby.",
    "Nobody asked yet.",
    "Begin anew.",
    "Dig deeper.",
    "Try elsewhere.",
    "Stay curious.",
    "Go further.",
)
"""Hint 1 of any question."""

SUBJECTS = {
    "slope": "Consider {noun} in {thing} and what moves it.",
    "step": "Consider {noun} in {thing} and its breaking point.",
    "route": "Consider {noun} in {thing} and a go-between.",
    "gate": "Consider {noun} in {thing} and what sets the stage.",
    "pull": "Consider {noun} in {thing} and its rival influences.",
}
"""Hint 2 by kind."""

QUESTIONS = {
    "slope": (
        Question(
            "Does {x} change {y}, and if so, in which direction and by how much?",
            "Find out if {xs} does anything to the {noun} of {thing}, and which way.",
        ),
        Question(
            "What becomes of {y} once there is more of {x}, and how large is the difference, if there is any?",
            "Look at what becomes of the {noun} of {thing} with more of {xs}.",
        ),
        Question(
            "How far does {y} hang on {x}, and do the two go up and down together or against each other?",
            "See whether {xs} and the {noun} of {thing} go up and down together.",
        ),
        Question(
            "Is {x} among the conditions that make for more or for less of {y}, or is it of no account?",
            "Check if {xs} counts for the {noun} of {thing} or is of no account.",
        ),
    ),
    "step": (
        Question(
            "Is there a level of {x} at which {y} abruptly switches, and to which side?",
            "Find the level of {xs}, if any, where {noun} in {thing} switches.",
        ),
        Question(
            "Can {thing} shrug off small amounts of {x} and give way in {noun} only past some critical point?",
            "See if there is a critical amount of {xs} for the {noun} of {thing}.",
        ),
        Question(
            "Where along the scale of {x}, if anywhere, does {y} break away from its resting value?",
            "Look along the scale of {xs} for a break in the {noun} of {thing}.",
        ),
        Question(
            "How much of {x} does it take before {y} responds at all, and what happens beyond that threshold?",
            "Look for a threshold of {xs} in the response of {noun} in {thing}.",
        ),
    ),
    "route": (
        Question(
            "How much of the influence of {x} on {y} travels through {ms} rather than by another path?",
            "Find out if {ms} carries what {xs} does to the {noun} of {thing}.",
        ),
        Question(
            "Is {ms} the link by which {x} reaches {y}, or does the influence pass it by?",
            "See whether {ms} links {xs} with the {noun} of {thing}.",
        ),
        Question(
            "If {ms} could not respond, what would be left of the sway that {x} holds over {y}?",
            "Ask what {xs} could still do to the {noun} of {thing} with {ms} out of the way.",
        ),
        Question(
            "On the way from {x} to {y}, what part does {ms} play as a messenger?",
            "Work out if {ms} is a messenger from {xs} to the {noun} of {thing}.",
        ),
    ),
    "gate": (
        Question(
            "Does {ms} decide how strongly {y} answers to {x}?",
            "See if the answer of {noun} in {thing} to {xs} varies with {ms}.",
        ),
        Question(
            "Is the grip of {x} on {y} the same whether {ms} is low or high?",
            "Compare the grip of {xs} on the {noun} of {thing} at low and high {mnoun}.",
        ),
        Question(
            "Under which conditions of {ms}, if it matters, does {x} gain or lose its power over {y}?",
            "Look for conditions of {ms} that matter to what {xs} does to the {noun} of {thing}.",
        ),
        Question(
            "Can {ms} strengthen, weaken or turn round what {x} does to {y}?",
            "Test if {ms} changes what {xs} does to the {noun} of {thing}.",
        ),
    ),
    "pull": (
        Question(
            "Which of {lists} governs {y}, and do they pull the same way?",
            "Find out which of {lists} the {noun} of {thing} obeys.",
        ),
        Question(
            "When {lists} all vary, whose changes does {y} follow, and in what direction?",
            "See whose changes, among {lists}, show up in the {noun} of {thing}.",
        ),
        Question(
            "How is control over {y} shared out between {lists}?",
            "See how {lists} share their say in the {noun} of {thing}.",
        ),
        Question(
            "Set against one another, what weight do {lists} each carry for {y}?",
            "Weigh {lists} against one another in what they mean for the {noun} of {thing}.",
        ),
    ),
}

STATEMENTS: dict[str, dict[str, str]] = {
    "slope": {
        "up3": "{Xs} is a strong driver that multiplies {ys}",
        "up2": "Wherever more of {xs} is found, a moderate gain shows up in {ys}",
        "up1": "A boost from {xs} to {ys} exists but is tiny",
        "null": "{Ys} does not depend on {xs}",
        "down1": "A slight loss of {noun} is all that {xs} costs {thing}",
        "down2": "To some degree, neither large nor small, {ys} shrinks under {xs}",
        "down3": "{Xs} is a powerful suppressor that crushes {ys}",
    },
    "step": {
        "up2": "Even a trace of {xs} is enough to set off a surge in {ys}",
        "up3": "Halfway up the scale of {xs}, {ys} leaps upwards",
        "up4": "Only when {xs} is close to its maximum does {ys} shoot up, late and all at once",
        "null": "There is no threshold of {xs} for {ys}, which never switches",
        "down2": "{Ys} is so fragile that the first whiff of {xs} ruins it",
        "down3": "{Ys} holds out at first, and collapses once {xs} has passed a middle level",
        "down4": "Extreme levels of {xs} alone can make {ys} fall, all lower ones being harmless",
    },
    "route": {
        "all": "{Ms} is the sole channel by which {xs} acts on {ys}",
        "most": "{Ms} passes on the bulk of what {xs} does to {ys}, and a small rest goes elsewhere",
        "half": "Two paths of equal weight lead from {xs} to {ys}, one of them by way of {ms}",
        "quarter": "A direct path from {xs} to {ys} dominates, with {ms} as a minor side road",
        "null": "{Ms} is not involved when {xs} acts on {ys}",
        "against": "{Ms} is a brake: it works against the influence of {xs} on {ys}",
    },
    "gate": {
        "gone": "A high level of {ms} abolishes the effect of {xs} on {ys}",
        "weaker": "Some of what {xs} does to {ys} is cushioned by {ms}",
        "null": "The effect of {xs} on {ys} does not vary with {ms}",
        "double": "{Xs} works twice as strongly on {ys} when {ms} is high",
        "triple": "{Ms} is a huge amplifier: with it, {xs} has three times the power over {ys}",
        "reversed": "With much of {ms}, {xs} turns round and moves {ys} in the opposite direction",
    },
    "pull": {
        "up": "Of all the candidates it is {cause} that raises {ys}",
        "down": "{Ys} is held down by {cause} and by no other candidate",
        "upall": "Only joint forces explain {ys}: {lists} lift it in equal parts",
        "downall": "Every candidate alike chips away at {ys}, be it {lists}",
        "null": "Neither alone nor together do {lists} have a say in {ys}",
    },
}
"""What may be concluded, by outcome; for a single pull by direction."""
