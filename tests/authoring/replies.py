"""Replies of a good model about the paper of data/pipers.md, which is made up, pass by pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAPER = Path(__file__).parent / "data" / "pipers.md"
OUTLINE: dict[str, Any] = {
    "experiment": True,
    "title": "Water warmth, lamps and leaders in the night calls of the marsh piper",
    "authors": ["A. Reedman", "B. Sallow", "C. Fenwick"],
    "journal": "Journal of Made Results",
    "published": "2031-04-17",
    "doi": "",
    "licence": "CC0 1.0",
    "topic": "What sets the night calls of a reed-bed frog, what do they tell, and what do lamps do?",
    "axes": [
        (
            "Which condition sets the rate of calls?",
            "The warmth of the water sets the rate of calls.",
            "The moisture of the air sets the rate of calls.",
        ),
        ("Does pitch depend on body size?", "Larger males call at a lower pitch.", "All males call at one pitch."),
        ("Which call do females approach?", "Females approach the faster call.", "Females approach the slower call."),
        ("Do lamps change the amount of calling?", "Lamps make calling rarer.", "Lamps leave calling as it is."),
        ("Who opens a chorus?", "One and the same male opens choruses.", "Any male may open a chorus."),
    ],
    "subtopics": [
        {
            "name": "Conditions",
            "text": "How do the conditions of a night relate to the calls of the frogs in reed beds?",
        },
        {"name": "Callers", "text": "How do the calls of marked males relate to their bodies and to where they sit?"},
        {"name": "Listeners", "text": "What do females and silent males do when calls are played back to them?"},
        {"name": "Lamps", "text": "What happens to calls and choruses of the reed bed on nights with street lamps?"},
    ],
}
OUTLINE["axes"] = [{"question": question, "poles": poles, "settled_by": "data"} for question, *poles in OUTLINE["axes"]]

# Subtopic, axes, protocol, quotation, the wordings with gaps, and what fills the gaps for each key, the paper's first.
Row = tuple[str, list[str], str, str, list[str], dict[str, tuple[str, ...]]]
ROWS: list[Row] = [
    (
        "s1",
        ["a1"],
        "Record all calls on sixty nights and relate their rate to water temperature and humidity.",
        "the rate of calls rose by 3.1 calls per minute for each degree of water temperature",
        [
            "The rate of calls rose by {0} per minute with each {1}.",
            "With each {1} there were {0} more calls per minute.",
            "Calls per minute grew by {0} for each further {1}.",
        ],
        {"0": ("3.1", "degree of the water"), "1": ("2.6", "step of humidity")},
    ),
    (
        "s1",
        ["a2"],
        "Measure the pitch of calls in museum recordings of males of known body length.",
        "the pitch of a call fell by 41 hertz for each millimetre of body length",
        [
            "Pitch fell by {0} hertz per millimetre of body length.",
            "Each millimetre of length lowered pitch by {0} hertz.",
            "Per millimetre of body, calls were lower by {0} hertz.",
        ],
        {"0": ("41",), "1": ("0.2",)},
    ),
    (
        "s1",
        ["a5"],
        "Locate the first caller of each night with an array of eight microphones.",
        "one and the same male called first on 47 of 62 nights",
        [
            "The commonest first caller was first on {0} of 62 nights.",
            "On {0} of 62 nights the usual male was the first one.",
            "Of 62 nights, {0} began with the most frequent opener.",
        ],
        {"0": ("47",), "1": ("3",)},
    ),
    (
        "s1",
        [],
        "Check the gain of every microphone with a tone of known loudness before each night.",
        "The gain of the microphones drifted by less than 0.4 decibels over the season",
        [
            "Gain drifted by less than 0.4 decibels over the season.",
            "Over the season the gain moved by under 0.4 decibels.",
            "The drift of the gain stayed below 0.4 decibels.",
        ],
        {"": ()},
    ),
    (
        "s2",
        ["a2"],
        "Catch and measure calling males by hand and correlate their length with their pitch.",
        "pitch and body length were related with a correlation of minus 0.71",
        [
            "Pitch and length had a correlation of minus {0}.",
            "The correlation of length with pitch was minus {0}.",
            "Length correlated with pitch at minus {0} overall.",
        ],
        {"0": ("0.71",), "1": ("0.02",)},
    ),
    (
        "s2",
        ["a2"],
        "Bring the smallest and the largest males into tanks and compare the pitch of both groups.",
        "the largest eight called 320 hertz lower than the smallest eight",
        [
            "Large males called {0} hertz lower than the small ones.",
            "Largest and smallest males were {0} hertz apart in pitch.",
            "Between the two sizes the pitch differed by {0} hertz.",
        ],
        {"0": ("320",), "1": ("6",)},
    ),
    (
        "s2",
        ["a4"],
        "Follow marked males near a post and count the lit and the dark nights on which they call.",
        "called on 64 percent of dark nights and on 23 percent of lit nights",
        [
            "Males called on 64 percent of dark and {0} of lit nights.",
            "Calls came on {0} percent of lit and 64 of dark nights.",
            "Dark nights had callers in 64 percent, lit nights in {0}.",
        ],
        {"0": ("23",), "1": ("63",)},
    ),
    (
        "s2",
        [],
        "Count females and males among all frogs that are caught by hand.",
        "109 females for every 100 males",
        [
            "There were 109 females for every 100 males caught.",
            "For every 100 males, hands caught 109 females.",
            "The catch held 109 females to each 100 males.",
        ],
        {"": ()},
    ),
    (
        "s3",
        ["a3"],
        "Release females between two speakers that play calls of different speed and note where they go.",
        "38 of 48 females went to the speaker that played the faster of two calls",
        [
            "Of 48 females, {0} went to the faster of two calls.",
            "The faster call drew {0} of all the 48 females.",
            "At the faster speaker {0} of 48 females arrived.",
        ],
        {"0": ("38",), "1": ("9",)},
    ),
    (
        "s3",
        ["a3"],
        "Count egg strings in the reed patches of the fastest and the slowest callers.",
        "reed patches of the fastest ten callers held 5.2 egg strings",
        [
            "Fast callers had {0} egg strings, slow ones {1}.",
            "Patches of slow callers held {1} strings, of fast {0}.",
            "There were {0} strings by fast callers, {1} by slow.",
        ],
        {"0": ("5.2", "1.9"), "1": ("2.1", "4.8")},
    ),
    (
        "s3",
        ["a5"],
        "Play back the call of the usual first caller or of another male to silent choruses.",
        "9 of 12 silent choruses began within a minute",
        [
            "The usual opener started {0} of 12 choruses, others {1}.",
            "Of 12 choruses {0} followed the opener, {1} another.",
            "Other males started {1} of 12 choruses, the opener {0}.",
        ],
        {"0": ("9", "1"), "1": ("5", "6")},
    ),
    (
        "s3",
        ["a1", "a3"],
        "Play calls in tanks whose water and air are set apart, and count answers and approaches.",
        "warm water made males answer 2.4 times as often",
        [
            "Males answered {0} times as often in {1}, and {2} of 22 females chose the fast call.",
            "In {1} there were {0} times the answers; the fast call drew {2} of 22 females.",
            "The fast call drew {2} of the 22 females, and {1} gave {0} times as many answers.",
        ],
        {
            "00": ("2.4", "warm water", "17"),
            "01": ("2.4", "warm water", "4"),
            "10": ("2.2", "moist air", "17"),
            "11": ("2.2", "moist air", "4"),
        },
    ),
    (
        "s4",
        ["a4"],
        "Count calls around posts whose lamps are switched on every second night.",
        "gave 12 calls per minute, on dark nights 31 calls per minute",
        [
            "Lit nights had {0} calls per minute, dark ones 31.",
            "On dark nights 31 calls came per minute, on lit {0}.",
            "Per minute, {0} calls came by lamp and 31 in the dark.",
        ],
        {"0": ("12",), "1": ("30",)},
    ),
    (
        "s4",
        ["a5"],
        "Locate who opens the chorus on lit nights with the array of microphones.",
        "was opened by its usual first caller in 13 of 16 cases",
        [
            "The usual male opened {0} of 16 choruses on lit nights.",
            "On lit nights {0} of 16 choruses had the usual opener.",
            "Of 16 choruses by lamp, {0} began with the usual male.",
        ],
        {"0": ("13",), "1": ("2",)},
    ),
    (
        "s4",
        ["a1", "a4"],
        "Set water, air and light of tanks apart from each other and count the calls of males.",
        "males called 58 percent less than in the dark",
        [
            "Calls fell by {0} percent under the lamp and were most frequent in {1}.",
            "In {1} calls were most frequent, and the lamp lowered them by {0} percent.",
            "The lamp took {0} percent of the calls, of which most were heard in {1}.",
        ],
        {"00": ("58", "warm water"), "01": ("1", "warm water"), "10": ("58", "moist air"), "11": ("1", "moist air")},
    ),
    (
        "s4",
        [],
        "Count insects in sticky traps below lit and dark posts.",
        "caught 7 times as many midges as those below dark posts",
        [
            "Traps by lamps caught 7 times as many midges.",
            "Midges were 7 times as many in traps by lamps.",
            "By lamps, traps held 7 times the midges.",
        ],
        {"": ()},
    ),
]


def _texts(row: Row) -> dict[str, list[str]]:
    return {key: [wording.format(*gaps) for wording in row[4]] for key, gaps in row[5].items()}


def _names() -> dict[str, Row]:
    places = [row[0] for row in ROWS]
    return {f"{row[0]}{'abcd'[places[:i].count(row[0])]}": row for i, row in enumerate(ROWS)}


STUDIES = {
    "studies": [
        {
            "subtopic": row[0],
            "axes": row[1],
            "text": row[2],
            "quotation": row[3],
            "wordings": next(iter(_texts(row).values())),
            "support": "sheet",
        }
        for row in ROWS
    ]
}
STATEMENTS = [
    ("Males call faster in warmer water.", "Males call faster in moister air."),
    ("Pitch tells how large a caller is.", "Pitch tells nothing about a caller."),
    ("Females prefer the faster call.", "Females prefer the slower call."),
    ("Lamps make reed beds quieter.", "Lamps leave reed beds alone."),
    ("Choruses wait for one male.", "Choruses start with anyone."),
]
CONCLUSIONS = {
    "conclusions": [
        {
            "axes": [f"a{i}"],
            "texts": dict(zip("01", texts, strict=True)),
            "needs": [[name for name, row in _names().items() if f"a{i}" in row[1]]],
        }
        for i, texts in enumerate(STATEMENTS, 1)
    ]
}
EDGES = {
    "edges": [
        {"subtopic": "s2", "needs": "s1", "because": "marked males are found with the recordings of the reed bed"},
        {"subtopic": "s3", "needs": "s1", "because": "calls that are played back have to be recorded first"},
        {"subtopic": "s4", "needs": "s2", "because": "the nights of marked males show where lamps can be tested"},
    ]
}
DISCLOSURE: dict[str, dict[str, Any]] = {
    "disclose_material": {
        "experiment": True,
        "title": OUTLINE["title"],
        "topic": "Animal communication",
        "procedure": ["Calls of marked frogs are recorded.", "Calls are played back.", "Lamps are switched on."],
    },
    "disclose_hypothesis": {"hypothesis": "If the water gets warmer, then males call more often."},
    "disclose_outcome": {
        "null_hypothesis": "If the water gets warmer, then there is no change in the calls.",
        "question": "How does water temperature relate to calls?",
        "outcome": "This study finds that warmer water raises the rate of calls.",
    },
    "disclose_claims": {
        "claims": [
            {
                "independent": "warmth of the water",
                "relation": "raises",
                "dependent": "the rate of calls",
                "contraries": ["Warmth of the water lowers the rate of calls."],
            }
        ]
    },
}
EVIDENCE = {"evidence": {"p1": ["s1a"]}}


def contraries(asked: str) -> dict[str, Any]:
    """Return the texts for the other poles of the studies that are asked for."""
    rows = {name: row for name, row in _names().items() if f"\n- {name}: " in asked}
    return {"results": {name: dict(list(_texts(row).items())[1:]) for name, row in rows.items()}}


def ladders(asked: str) -> dict[str, Any]:
    """Return hints and paraphrases for the nodes that are asked for."""
    found = re.search(r"Write hints and paraphrases for ([^.]*)\.", asked)
    assert found is not None
    return {"nodes": {name: _ladder(name) for name in found[1].split(", ")}}


def _ladder(name: str) -> dict[str, Any]:
    index = int(name[1]) - 1
    text = _names()[name][2] if len(name) > 2 else OUTLINE["subtopics"][index]["text"]
    words = text.rstrip(".?").split()
    parts = [" ".join(words[: len(words) * part // 4]) for part in (1, 2, 3)]
    hints = [f"Think about this for a while: {parts[0]}", f"Look at this: {parts[1]}", f"Look: {parts[2]}"]
    return {"hints": hints, "paraphrases": [f"One could put it so: {text}", f"In short: {parts[2]}"]}


ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Outline the inquiry": lambda asked: OUTLINE,
    "Write the studies": lambda asked: STUDIES,
    "Write what these studies would": contraries,
    "Write the conclusions": lambda asked: CONCLUSIONS,
    "Say which subtopics": lambda asked: EDGES,
    "Write hints and paraphrases": ladders,
    "These claims sum up": lambda asked: EVIDENCE,
    '- "experiment": true if the paper reports': lambda asked: DISCLOSURE["disclose_material"],
    '- "hypothesis": one sentence': lambda asked: DISCLOSURE["disclose_hypothesis"],
    '- "null_hypothesis": the hypothesis': lambda asked: DISCLOSURE["disclose_outcome"],
    "Split the outcome": lambda asked: DISCLOSURE["disclose_claims"],
}
"""Replies by words of the request behind the fence."""


def good(body: dict[str, Any]) -> str:
    """Return the reply to a request, in the frame that models like."""
    asked = body["messages"][1]["content"]
    asked = asked.split(asked.split("\n")[0])[-1]
    (answer,) = (reply for words, reply in ANSWERS.items() if words in asked)
    return f"Here it is:\n```json\n{json.dumps(answer(asked))}\n```"
