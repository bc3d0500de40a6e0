"""The section of a report that splits trees at the training cutoffs of models."""

from __future__ import annotations

from collections.abc import Mapping

from inquitree_gym.analysis.cutoff import CUTOFF_MEASURES, Cutoffs, Split
from inquitree_gym.analysis.diff_in_diff import Crossing
from inquitree_gym.analysis.memorisation_summary import Memories
from inquitree_gym.report import figures
from inquitree_gym.report.contents import Contents, Section
from inquitree_gym.report.tables import Grid, as_csv, grid

ANCHOR, TITLE = "cutoff", "Before and after the training cutoff"
_PANELS = (("coverage", "coverage r_c"), ("unaided", "unaided coverage"), ("Q/|C|", "conclusion Q/|C|"))

_MEMORY_HEADS = (
    "model", "judge", "cutoff", "conclusions", "not scored", "formless", "mean S", "before", "after", "before − after",
    "df", "unclear trees",
)  # fmt: skip
_GAIN_HEADS = ("agent", "judge", "mean S in the loop", "closed book", "gain", "trees")
_WORDS = (
    "Trees at fake level {level}, by whether their paper was published before or after the end of the "
    "training data of the agent's model. A model that does better before may have read the papers. It may as well "
    "be that newer papers make harder trees: in this split the age of a paper and everything else about it cannot "
    "be told apart. The controls ask no model and are split at the median of the models' cutoffs; what they show "
    "comes from the trees. The difference has Welch's interval over tree means, with its degrees of freedom (df), "
    "where each side has five trees; the intervals are not corrected for looking at several models and measures.",
    "A tree is unclear, and left out, where the date of its paper or the cutoff is not known precisely enough to "
    "tell the side. A cutoff of two dates runs from what the vendor calls reliable knowledge to the end of the "
    "training data; papers from between are unclear. mean S is what the conclusion says, without the evidence that "
    "Q asks for.",
    "The table of same trees compares trees with themselves: what it brings a model that a paper appeared before its "
    "cutoff, beside the level of each model and of each tree. It rests on the trees that lie before the cutoff of "
    "one model and after that of another, and has a jackknife interval where these and the other trees are five or "
    "more each.",
)
_WORDS_ON_MEMORY = (
    "Closed book: the same models concluded from the topic alone, without an inquiry, and the same judge graded it "
    "(mean S). What they state rightly there they knew or guessed beforehand; guessing shows on both sides of the "
    "cutoff. Beside it stands what the agents concluded in the loop at fake level {level}, on the same trees; only the "
    "gain was earned in the loop."
)


def cutoffs(report: Contents) -> Section:
    """Papers from before and from after the training cutoff of an agent's model, as in the paper's Figure 4."""
    found, memories = report.cutoffs, report.memories
    recalled = () if memories is None else _memory_grids(report, memories)
    beside = () if memories is None else (_WORDS_ON_MEMORY.format(level=memories.level),)
    if found is None or not found.splits:
        words = ("No agent here has a known training cutoff, so nothing can be said of before and after.",)
        return Section(ANCHOR, TITLE, (*words, *_left_out(found), *beside), (), recalled)
    panels = tuple(
        figures.pairs(
            f"cutoff-{number}",
            axis,
            ("before the cutoff", "after it"),
            [(_label(report, each), (each.before[measure], each.after[measure])) for each in found.splits],
        )
        for number, (measure, axis) in enumerate(_PANELS)
    )
    words = (*(part.format(level=found.level) for part in _WORDS), *_left_out(found), *beside)
    grids = (_split_grid(report, found), _crossing_grid(found.crossings), *recalled)
    return Section(ANCHOR, TITLE, words, panels, grids)


def as_table(report: Contents, found: Cutoffs) -> str:
    """Return the splits as CSV: one line per agent, measure and side, and one for the difference."""
    heads = (
        "agent",
        "cutoff",
        "control",
        "fake_level",
        "measure",
        "side",
        "mean",
        "low",
        "high",
        "trees",
        "episodes",
        "df",
    )
    return as_csv(
        heads,
        (
            (report.names[each.player], each.cutoff, each.control, found.level, measure, side, *of[measure], degrees)
            for each in found.splits
            for measure in CUTOFF_MEASURES
            for side, of, degrees in (
                ("before", each.before, None),
                ("after", each.after, None),
                ("difference", each.difference, each.degrees[measure]),
            )
        ),
    )


def _split_grid(report: Contents, found: Cutoffs) -> Grid:
    heads = ("agent", "cutoff", "measure", "before", "trees", "after", "trees", "before − after", "df", "unclear trees")
    lines = [
        [
            _label(report, each), each.cutoff, measure, each.before[measure], each.before[measure].trees,
            each.after[measure], each.after[measure].trees, each.difference[measure], each.degrees[measure],
            each.unclear,
        ]
        for each in found.splits
        for measure in CUTOFF_MEASURES
    ]  # fmt: skip
    return grid("Before and after", heads, lines, names=3)


def _crossing_grid(found: Mapping[str, Crossing]) -> Grid:
    heads = ("measure", "before − after, same tree", "trees on both sides", "other trees", "models", "episodes")
    lines = [
        [measure, each.effect, each.effect.trees, each.others, each.models, each.effect.episodes]
        for measure, each in found.items()
    ]
    return grid("The same tree, before for one model and after for another", heads, lines)


def _memory_grids(report: Contents, found: Memories) -> tuple[Grid, ...]:
    lines = [
        [
            each.name, each.judge, each.cutoff, each.conclusions, each.unscored, each.formless, each.memory,
            each.before, each.after, each.difference, each.degrees, each.unclear,
        ]
        for each in found.memories
    ]  # fmt: skip
    gains = [
        [report.names[each.player], each.judge, each.loop, each.memory, each.gain, each.gain.trees]
        for each in found.gains
    ]
    own = grid("Closed book: mean S from the topic alone", _MEMORY_HEADS, lines, names=3)
    return (own, grid("In the loop beside closed book", _GAIN_HEADS, gains, names=2)) if gains else (own,)


def _left_out(found: Cutoffs | None) -> tuple[str, ...]:
    if found is None or not found.unnamed:
        return ()
    named = ", ".join(f"{model} ({count:,} episodes)" for model, count in found.unnamed.items())
    return (
        f"Left out, because no entry gives their cutoff: {named}. A file of models with --models adds them.",
    )  # fmt: skip


def _label(report: Contents, each: Split) -> str:
    return report.names[each.player] + ", control" * each.control
