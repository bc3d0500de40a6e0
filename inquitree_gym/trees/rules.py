"""Rules for research trees: bounds, and codes with severities and summaries, which docs/trees-format.md repeats."""

from __future__ import annotations

from typing import NamedTuple

from inquitree_gym.errors import Fault, Severity

MIN_FIRST_HINT_WORDS = 5
"""Minimum length of a first hint, in words. A shorter one says nothing."""
MIN_LAST_HINT_SIMILARITY = 0.85
"""Minimum similarity of the last hint to the text of its target, which it names."""
MAX_FALL = {"T501": 0.03, "T502": 0.04}
"""Largest fall of a hint behind an earlier one, in similarity to the target, that is no fault.

It is what rewording without meaning does: a lead-in, "please", no full stop, no articles, "that" for "which". Of such
changes to hints of shipped trees, 95 % move a similarity by at most .031 in characters (5,789 changes, 18 trees) and
.038 under the default embedder (2,151 changes, 6 trees). Exchanged neighbouring hints fall further in 95 and 94 %.
"""
MAX_SIBLING_SIMILARITY = 0.80
"""Maximum similarity between two subtopics, and between two studies of one subtopic."""
MAX_LEAK = 0.10
"""Maximum lead of the true result over the nearest fake in similarity to a topic, question or low hint."""
MAX_TOPIC_WORDS, MAX_QUESTION_WORDS, MAX_RELATION_WORDS = 4, 9, 5
"""Maximum lengths in a disclosure, in words. Those of ProjectionBench."""
MAX_CLAIM_SIMILARITY = 0.80
"""Maximum similarity between two disclosed claims."""

AXES, MIN_ABSTRACT_AXES = (5, 8), 4
"""Range of the number of axes, and its lower end where the evidence is an abstract."""
SMALL, SMALL_AXES, SMALL_PAIRS, SMALL_CONTROLS = 5, 5, 2, 3
"""Largest number of subtopics of a small tree. It has at most so many axes, results of two axes, at least controls."""
TURNS_BOUND = 8
"""Largest number of subtopics for which 2n turns bound axes and choice."""
MIN_READERS = 3
"""Smallest number of studies that read an axis."""
MAX_PAIR_SHARE = 0.25
"""Maximum share of results that read two axes."""
MIN_CONTROLS = 2
"""Smallest number of studies that read no axis."""
MAX_COURSE_SHARE = 0.65
"""Maximum number of axes that a random course reads in 2n turns, as a share of the best one's."""
MIN_WORDINGS = 3
"""Smallest number of wordings of a result in one world."""
MAX_LENGTH_SPREAD = 0.15
"""Maximum difference in length between the texts of one result or item, in characters, as a share of the shortest."""
MAX_OTHERWISE_SETTLED = 1 / 3
"""Maximum share of axes that can be settled without data."""
MAX_EXAMINED = (1, 3)
"""Range of the number of conclusion items that read an axis."""


class Rule(NamedTuple):
    """One rule."""

    severity: Severity
    summary: str


RULES = {
    "T101": Rule("error", "the file is UTF-8 JSON of at most 8,000,000 bytes, without repeated keys or NaN"),
    "T102": Rule("error", "every field is known, present, and of the right type, size and pattern"),
    "T103": Rule("error", "the file name is the id of the tree, and no shipped tree has that id"),
    "T111": Rule("error", "ids are unique"),
    "T112": Rule("error", "no two subtopics or studies have the same text"),
    "T113": Rule("error", "no paraphrase repeats a text or paraphrase of its node or of a sibling"),
    "T114": Rule("error", "prerequisites name subtopics, each once"),
    "T115": Rule("error", "prerequisites form no cycle"),
    "T116": Rule("error", "conclusion items and disclosed claims need existing studies"),
    "T117": Rule("error", "provenance names existing nodes and sources, and source ids are unique"),
    "T119": Rule("error", "results and conclusion items read axes of the tree, each once"),
    "T120": Rule(
        "error",
        "they have a text for every combination of the poles of their axes, results equally many wordings of each",
    ),
    "T121": Rule("error", "the actual pole of an axis is one of its poles, and is given on all axes or on none"),
    "T201": Rule("error", "no prerequisite is already implied by another one"),
    "T205": Rule("error", "every subtopic, study and conclusion item has an entry in `provenance.support`"),
    "T206": Rule("error", "such an entry names a source or has the strength `unconfirmed`"),
    "T207": Rule("error", "no scored result or conclusion item of a tree with a public source is `unconfirmed`"),
    "T208": Rule("note", "the tree states its evidence tier"),
    "T301": Rule("error", "no text says TODO; while one does, T302 to T807 are not checked"),
    "T302": Rule("warning", f"the first hint has at least {MIN_FIRST_HINT_WORDS} words"),
    "T305": Rule("note", "every subtopic and study has paraphrases"),
    "T501": Rule(
        "error",
        f"no hint falls behind an earlier one by more than {MAX_FALL['T501']:.2f} in similarity to the text of its "
        "target, in character TF-IDF, unless it rises as clearly under the embedder",
    ),
    "T502": Rule(
        "error",
        f"no hint falls behind an earlier one by more than {MAX_FALL['T502']:.2f} in similarity to its target, under "
        "the embedder",
    ),
    "T503": Rule("error", "the last hint is nearest to its own target"),
    "T504": Rule(
        "error", f"the similarity of the last hint to the text of its target is at least {MIN_LAST_HINT_SIMILARITY:.2f}"
    ),
    "T505": Rule("warning", "each hint is closer to its target than the hint before, by either measure"),
    "T601": Rule("error", f"the similarity of the texts of two siblings is at most {MAX_SIBLING_SIMILARITY:.2f}"),
    "T602": Rule("warning", "every text is nearest to its own node among its siblings"),
    "T603": Rule("warning", "every paraphrase is nearest to its own node among its siblings"),
    "T801": Rule(
        "error",
        f"a disclosed topic has at most {MAX_TOPIC_WORDS} words; the question at most {MAX_QUESTION_WORDS}, and ends "
        "with a question mark",
    ),
    "T802": Rule("error", f"the relation of a disclosed claim has at most {MAX_RELATION_WORDS} words"),
    "T803": Rule(
        "error", "both hypotheses say “If …, then …” or “When …, then …”, and the null hypothesis that nothing changes"
    ),
    "T804": Rule("error", "the outcome is one sentence that starts “This study finds”"),
    "T805": Rule("error", "a contrary repeats neither its claim nor another contrary"),
    "T806": Rule("error", f"the similarity of two disclosed claims is at most {MAX_CLAIM_SIMILARITY:.2f}"),
    "T807": Rule(
        "error",
        "no disclosed text reveals a claim: its similarity to the claim exceeds that to the nearest contrary by at "
        f"most {MAX_LEAK:.2f}",
    ),
    "T901": Rule(
        "error",
        f"a tree has {AXES[0]} to {AXES[1]} axes, at least (2n + 1)/3 with up to {TURNS_BOUND} subtopics, at most "
        f"{SMALL_AXES} with up to {SMALL} subtopics; {MIN_ABSTRACT_AXES} suffice in tier C",
    ),
    "T902": Rule("error", f"at least {MIN_READERS} studies read each axis"),
    "T903": Rule("error", "in two subtopics or more; one axis of a tree may be read in one alone, by two methods"),
    "T904": Rule("error", "at most one reader of an axis is `inferred`"),
    "T905": Rule("warning", "an `inferred` result states no figures"),
    "T906": Rule(
        "error",
        f"at most a quarter of the results read two axes, and at most {SMALL_PAIRS} with up to {SMALL} subtopics",
    ),
    "T907": Rule("error", "results that read two axes share one axis, or form a triangle of three axes"),
    "T908": Rule(
        "error", f"at least {MIN_CONTROLS} studies read no axis, {SMALL_CONTROLS} with up to {SMALL} subtopics"
    ),
    "T909": Rule(
        "error",
        f"with up to {TURNS_BOUND} subtopics, a random course of 2n turns reads at most {MAX_COURSE_SHARE} of the axes "
        "that the best one reads",
    ),
    "T910": Rule("error", f"a result has at least {MIN_WORDINGS} wordings for each key"),
    "T911": Rule(
        "error", f"the texts of one result or item differ in length by at most {MAX_LENGTH_SPREAD:.0%}, in characters"
    ),
    "T912": Rule("error", "they state equally many figures"),
    "T913": Rule("error", "no two of them have the same words, nor have two poles of an axis"),
    "T914": Rule("warning", "none says but, yet, still, only or surprisingly, which may betray the expected pole"),
    "T915": Rule("warning", "the order of poles is drawn: the actual pole is not the first one on every axis"),
    "T916": Rule("error", "at most a third of the axes can be settled otherwise than by data"),
    "T917": Rule("error", f"{MAX_EXAMINED[0]} to {MAX_EXAMINED[1]} conclusion items examine each axis"),
    "T918": Rule("error", "any choice of one study per group of `needs` determines all axes of the item"),
    "T919": Rule("error", "every study in `needs` reads an axis of the item"),
    "T920": Rule("note", "wordings of one result that state figures state different ones"),
    "T921": Rule(
        "error",
        "no topic, question, protocol or hint suggests a pole: its mean similarity to the results of one pole exceeds "
        f"that to those of another by at most {MAX_LEAK:.2f}",
    ),
}
"""Rules by code: T1 file, T2 structure, T3 texts, T5 hints, T6 siblings, T8 disclosure, T9 axes."""


def fault(
    code: str, node: str, path: str, message: str, value: float | None = None, bound: float | None = None
) -> Fault:
    """Return a fault with the severity of its rule."""
    return Fault(code, node, message, path, value, bound, RULES[code].severity)
