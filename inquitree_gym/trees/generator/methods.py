"""How subtopics are investigated: protocols with their hints, and what a result says, by kind of question.

Names in braces are those of `questions`, with the numbers and words that `studies` reads. The protocols of one kind are
as unlike each other as can be, so that an action can tell them apart. What a result says of one outcome has the length
of what it says of another, and holds as many numbers.
"""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """One way to investigate."""

    text: str
    vague: str
    """Hint 1."""
    apt: str
    """Hint 2."""
    near: str
    """Hint 3."""
    result: str


METHODS = {
    "slope": (
        Method(
            "Run a randomised trial: spread {n} {units} of {thing} by lot over {k} arms that get from none to the most "
            "of {xn}, and let a blindfolded helper take the readings by {tool}.",
            "Let chance decide.",
            "A randomised trial with several arms.",
            "Spread {units} of {thing} by lot over arms that get different amounts of {xn}, and take readings.",
            "In the trial {ys} {verb} with the amount of {xn}: it averaged {t} {unit} in the highest arm against {c} "
            "{unit} in the empty one, {p} % apart.",
        ),
        Method(
            "Travel across {scene} without touching anything, write down {xn} beside {noun} at {n} places where "
            "{thing} can be met with, and compute the correlation over that map.",
            "Leave all as it was.",
            "A map of places with {noun} written down and nothing touched could tell.",
            "Survey places where {thing} can be met with and correlate {noun} with {xn}.",
            "Over {n} places {ys} was {compared} where there was much of {xn} (r = {r}); {q} of the places fitted that "
            "pattern.",
        ),
        Method(
            "Withdraw what was always there: screen off one half of {thing} from {xn}, and watch for {d} days whether "
            "its {noun} drifts away from that of the unscreened {units}.",
            "See what goes missing.",
            "Watch for a drift in {noun} after screening some {units} off.",
            "Screen one half of {thing} from {xn} and watch its {noun} beside the other {units}.",
            "Screened from {xn}, {ys} {inverse} from {t} to {c} {unit} within {d} days, while the unscreened half "
            "stayed within {e} %.",
        ),
        Method(
            "Dig {n} years of logbooks and letters about {thing} out of the archive, mark each date on which {xn} "
            "suddenly grew, and line up the entries on {noun} before and after.",
            "Somebody must have known.",
            "Old letters and logbooks may have {noun} in them.",
            "Search logbooks and letters about {thing} and compare entries on {noun} before and after {xn} grew.",
            "After {k} dates on which {xn} suddenly grew, {ys} {verb} in most logbooks, from {c} to {t} {unit} on "
            "average; {q} of {n} years could be used.",
        ),
    ),
    "step": (
        Method(
            "Prepare a dose ladder with evenly spaced rungs from none to {top} {u} of {xn}, place separate {units} of "
            "{thing} on the rungs, and plot {noun} to find a break.",
            "Go in even strides.",
            "A ladder of doses with {units} on its rungs would show {noun}.",
            "Place {units} of {thing} on spaced doses of {xn} and plot their {noun}.",
            "{Ys} held near {c} {unit} up to {lo} {u} of {xn}; from {hi} {u} onwards it {verb} {t} {unit}, in {q} of "
            "{n} runs.",
        ),
        Method(
            "Let a motor raise {xn} by a crawl around the same {units} of {thing} through {d} days and nights, film "
            "{noun} without a pause, and time its first lasting departure from rest.",
            "Be patient.",
            "A motor with a slow crawl, and a film of {noun} through days and nights, would do.",
            "Raise {xn} by a crawl around {thing}, film without a pause, and time when {noun} first departs.",
            "During the crawl {ys} {move} at {hi} {u} of {xn} in {q} of {n} runs, and ended at {t} {unit} after {c} "
            "{unit} at rest.",
        ),
        Method(
            "Collect {n} {units} of {thing} from all over {scene}, sort the catch into narrow bands of {xn} as nature "
            "has dealt it out, and compare neighbouring bands in {noun}.",
            "Take the world at its word.",
            "Sort a catch of {units} into bands and compare {noun} between neighbours.",
            "Sort a catch of {thing} into bands of {xn}, and compare the {noun} of neighbouring bands.",
            "{Ys} read {t} {unit} in the band above {hi} {u} of {xn} and {c} {unit} in the one below, {compared}; "
            "other bands differed by {e} % at most.",
        ),
        Method(
            "Swing {xn} up and down {k} times like a pendulum, note which swings make {thing} flip over, and whether "
            "the way back is the same.",
            "There and back again.",
            "Think of a pendulum and which swings make a flip.",
            "Swing {xn} up and down and note when {thing} flip over.",
            "On upward swings {ys} {flip} at {hi} {u} of {xn}, from {c} to {t} {unit}, and it was back at rest after "
            "all {k} returns.",
        ),
    ),
    "route": (
        Method(
            "Apply {xn} twice to the same {n} {units} of {thing}, once with {mn} left free and once with it clamped by "
            "a servo, and compare the size of both answers.",
            "Keep still.",
            "A clamp on {mn} would help.",
            "Apply {xn} around {thing} with {mn} free and with it clamped.",
            "{Xn} took {ys} from {c} to {t} {unit} with {mn} free and to {b} {unit} with it clamped; {lost} of the "
            "response was lost.",
        ),
        Method(
            "Leave out the cause altogether; imitate by hand the course that {mn} would have taken, and see if that "
            "make-believe deceives {thing}, and for what part.",
            "Turn it round.",
            "Something may be imitated by hand: {mn}.",
            "Leave out the cause and imitate by hand the course of {mn} around {thing}.",
            "Imitated by hand, {mn} took {ys} from {c} to {h} {unit}, against {t} {unit} under {xn} itself; {lost} of "
            "the response was there.",
        ),
        Method(
            "Do no experiment: gather {n} past records of {thing}, and estimate by regression how closely {noun} is "
            "tied to its cause before and after {mn} is partialled out.",
            "Stay in your chair.",
            "Past records need no experiment.",
            "Gather past records of {thing} and estimate what ties {noun} to its cause besides {mn}.",
            "In {n} records {ys} was tied to {xn} at {r} as they stood and at {s} once {mn} was partialled out; {lost} "
            "of the tie was lost.",
        ),
        Method(
            "House some {thing} with numb partners, so that {mn} can never change, and others with normal ones; expose "
            "both houses to the cause and contrast them after {d} days.",
            "Mind the company.",
            "Numb partners could help in a contrast.",
            "House {thing} with numb and with normal partners, so that {mn} changes for some only, and contrast both.",
            "Under {xn}, {ys} went from {c} to {t} {unit} in {n} normal {units} and to {b} {unit} beside numb "
            "partners; {lost} of the response was lost.",
        ),
    ),
    "gate": (
        Method(
            "Set up a factorial design of four cells, low and high {xn} crossed with low and high {mn}, fill each with "
            "{n} {units} of {thing}, and test the interaction on {noun}.",
            "Do two at once.",
            "A crossed design with four cells of {units} would test {noun}.",
            "Fill four cells with {thing}, cross {xn} with {mn}, and test {noun} for an interaction.",
            "{Xn} changed {ys} by {p1} % in cells with low {mnoun} and by {p2} % in cells with high {mnoun}; in the "
            "latter the effect {verdict}.",
        ),
        Method(
            "Take the tables that exist on {thing}, cut them at the median of {mn}, fit a straight line of {noun} "
            "to either half, and compare the slopes.",
            "Nothing new is needed.",
            "The tables that exist on {noun} may do.",
            "Cut the tables on {thing} by {mn} and fit lines of {noun} to both halves.",
            "The slope of {ys} against {xn} was {p1} % per step in the half with low {mnoun} and {p2} % in the other "
            "half, where it {verdict}.",
        ),
        Method(
            "Transplant {n} {units} of {thing} to places where {mn} is greater, let {xn} vary there as it did at home, "
            "and see if the old response survives the journey.",
            "Go abroad.",
            "Transplant some {units} to other places and see if the response survives.",
            "Transplant {thing} to places with greater {mnoun} and see if the response to {xn} survives.",
            "At home {ys} followed {xn} by {p1} %, and by {p2} % at places where {mn} was greater; there the response "
            "{verdict} in {q} of {n} {units}.",
        ),
        Method(
            "Hold {mn} at one fixed value after another, {k} in all, fire a short pulse of {xn} at every stop, and "
            "record the size of the echo that returns from {thing}.",
            "Knock and listen.",
            "Fire pulses at several fixed values and record an echo.",
            "Fix {mn} at several values, fire pulses of {xn}, and record the echo from {thing}.",
            "As {mn} was put up over {k} fixed values, the echo of {ys} to a pulse of {xn} went from {p1} % to {p2} %; "
            "at the last it {verdict}.",
        ),
    ),
    "pull": (
        Method(
            "Fit out separate pens of {n} {units} of {thing} and raise {listn} one at a time, one pen for each and one "
            "for all together, beside an untouched pen.",
            "One by one.",
            "Separate pens of {units}, one of them untouched, would show it one at a time.",
            "Raise {listn} one at a time in separate pens of {thing}.",
            "Raised one at a time in pens of {n} {units} each, {listn} changed {ys} by {effects} % in this order: "
            "{who}.",
        ),
        Method(
            "Send observers to {n} sites in {scene} to write down {listn}, and enter the whole table into one multiple "
            "regression for {thing}.",
            "Count everything.",
            "Observers could fill a table for one regression on {noun}.",
            "Write down {listn} at many sites and enter them into one regression.",
            "Over {n} sites one multiple regression gave {listn} weights of {weights} for {ys}, in this order: {who}.",
        ),
        Method(
            "Cancel {listn}, now this and now that, while the rest goes on as ever, and measure with a {tool} what "
            "remains of {noun} in {thing}.",
            "Less is more.",
            "See what remains of {noun} under a cancellation.",
            "Cancel {listn} in turn, while the rest goes on, and measure what remains in {thing}.",
            "From {t} {unit}, cancelling {listn} in turn brought {ys} to {remains} {unit} in this order: {who}.",
        ),
        Method(
            "Look for natural twins: {n} pairs of {thing} that are alike in all but one of {listn}, and rank these by "
            "the gap that opens within a pair.",
            "Nature has tried it.",
            "Pairs of natural twins, alike in all but one respect, could be ranked by their gap.",
            "Find pairs of {thing} alike in all but one of {listn} and rank the gaps.",
            "In {n} pairs alike in all but one of {listn}, {ys} differed by {effects} % within a pair, in this order: "
            "{who}.",
        ),
    ),
}

VERDICTS: dict[str, dict[str, dict[str, str]]] = {
    "slope": {
        "up3": {"verb": "rose steeply", "compared": "far higher", "inverse": "fell steeply"},
        "up2": {"verb": "rose clearly", "compared": "clearly higher", "inverse": "fell clearly"},
        "up1": {"verb": "rose slightly", "compared": "slightly higher", "inverse": "fell slightly"},
        "null": {"verb": "stayed level", "compared": "no different", "inverse": "stayed level"},
        "down1": {"verb": "fell slightly", "compared": "slightly lower", "inverse": "rose slightly"},
        "down2": {"verb": "fell clearly", "compared": "clearly lower", "inverse": "rose clearly"},
        "down3": {"verb": "fell steeply", "compared": "far lower", "inverse": "rose steeply"},
    },
    "step": {
        "up": {"verb": "jumped to", "move": "broke upwards", "compared": "a sudden gain", "flip": "flipped upwards"},
        "down": {
            "verb": "dropped to",
            "move": "broke downwards",
            "compared": "a sudden loss",
            "flip": "flipped downwards",
        },
        "null": {"verb": "still read", "move": "stayed put", "compared": "much the same", "flip": "stayed put"},
    },
    "route": {
        "all": {"lost": "all"},
        "most": {"lost": "most"},
        "half": {"lost": "half"},
        "quarter": {"lost": "a quarter"},
        "null": {"lost": "none"},
        "against": {"lost": "less than none"},
    },
    "gate": {
        "gone": {"verdict": "was gone"},
        "weaker": {"verdict": "was weaker"},
        "null": {"verdict": "was unchanged"},
        "double": {"verdict": "had doubled"},
        "triple": {"verdict": "had tripled"},
        "reversed": {"verdict": "was reversed"},
    },
}
"""What a result says of each outcome; for a step by its direction."""
