"""Split of a projection into claims: the clauses of its sentences that have a verb of their own."""

from __future__ import annotations

import re
from itertools import zip_longest

from inquitree_gym.judges.claims import MIN_CLAIM_WORDS, counted_claims
from inquitree_gym.matching import MAX_ACTION_LENGTH

_SOURCE = r"(?:study|paper|work|experiments?|results?|data|findings?|authors?|prediction|projection|hypothesis|claim)"
_SAYS = (
    r"(?:finds?|found|shows?|shown|showed|expects?|expected|predicts?|predicted|projects?|reports?|reveals?|concludes?"
    r"|demonstrates?|suggests?|indicates?|believes?|hypothesi[sz]es?|anticipates?|is|are)"
)
_PREAMBLE = re.compile(
    rf"^(?:(?:(?:(?:this|the|our|my|these)\s+)?{_SOURCE}|we|i|it)\s+"
    rf"(?:(?:will|would|should|is|are|likely|probably|also|to)\s+){{0,3}}?{_SAYS}\s*:?\s*that\s+|that\s+)",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"\s*;\s*(?:(?:and|but|while|whereas|yet|however)\b,?\s*)?(?:that\s+)?"
    r"|\s*,?\s+(?:and|but)\s+that\s+|\s*,\s+that\s+"
    r"|\s*,\s*(?:(?:and|but|yet|so|whereas|while|although|though)\b\s*,?\s*)?(?:(?:also|even|thus)\s+)?"
    r"|\s+(?:whereas|while|although|though|but|and|yet)\s+(?:(?:also|even|thus)\s+)?",
    re.IGNORECASE,
)
"""Place where a clause may end."""
_STRONG = re.compile(r";|\bthat\b|\b(?:whereas|although|though|while|but|yet)\b", re.IGNORECASE)
"""A joint after which a new clause starts if it has any verb."""
_THAT = re.compile(r"\bthat\b", re.IGNORECASE)
_OPENS = re.compile(
    r"^(?:if|when|whenever|as|because|since|once|after|before|unless|until|in|with|without|under|during|for|by|at|on"
    r"|across|given|relative|compared|unlike|despite|through|among|between|from)\b",
    re.IGNORECASE,
)
"""A piece that begins so needs the clause behind its comma."""
_CONTINUES = re.compile(r"^(?:which|who|whose|where|when|if|than|then|or|nor|not|rather|instead)\b", re.IGNORECASE)
"""A piece that begins so belongs to the clause before it."""
_AUXILIARY = (
    r"is|are|was|were|has|have|had|does|do|did|will|would|can|cannot|could|may|might|should|must|won['’]t|doesn['’]t"
    r"|don['’]t|isn['’]t|aren['’]t"
)
_STEMS = (
    "abolish", "accelerate", "activate", "affect", "agree", "allow", "alter", "amplify", "appear", "attenuate",
    "become", "begin", "benefit", "block", "boost", "bring", "carry", "cause", "change", "coincide", "come", "confine",
    "contain", "contribute", "correlate", "covary", "cut", "decline", "decode", "decrease", "degrade", "delay",
    "depend", "depress", "determine", "differ", "diminish", "discount", "displace", "disrupt", "distort", "double",
    "drive", "drop", "elevate", "eliminate", "emerge", "enable", "encode", "engage", "enhance", "enlarge", "evoke",
    "exceed", "expand", "explain", "extend", "facilitate", "fail", "fall", "fluctuate", "follow", "gain", "generalise",
    "generalize", "give", "go", "grow", "halt", "help", "hinder", "hold", "impair", "improve", "increase", "induce",
    "influence", "inhibit", "keep", "lack", "lag", "lead", "leave", "lengthen", "lessen", "lift", "limit", "lose",
    "lower", "maintain", "make", "match", "mimic", "modify", "modulate", "move", "narrow", "need", "occur",
    "outperform",
    "peak", "permit", "persist", "play", "precede", "predict", "prefer", "preserve", "prevent", "produce", "prolong",
    "promote", "protect", "raise", "reach", "reappear", "recover", "recreate", "reduce", "reflect", "remain", "remap",
    "remove", "represent", "reproduce", "require", "resemble", "respond", "restart", "restore", "retain", "reverse",
    "rise", "run", "scale", "score", "sharpen", "shift", "shorten", "show", "shrink", "silence", "slow", "spare",
    "speed", "stabilise", "stabilize", "start", "stay", "stop", "strengthen", "suppress", "sustain", "take", "tend",
    "track", "transfer", "trigger", "vary", "weaken", "widen", "worsen", "yield",
)  # fmt: skip


def _third_person(stem: str) -> str:
    """Return the pattern of the form that goes with a singular subject."""
    return f"{stem[:-1]}ies" if stem.endswith("y") and stem[-2] not in "aeiou" else f"{stem}e?s"


_SINGULAR = "|".join(map(_third_person, _STEMS))
_PLURAL = "|".join(_STEMS)
_NOUNS = (
    "benefit|block|boost|change|cut|decline|decrease|delay|double|drive|drop|fall|gain|help|hold|increase|influence|lack"
    "|lag|lead|lift|limit|lower|match|move|narrow|need|peak|play|reach|reverse|rise|run|scale|score|shift|show|slow"
    "|speed|start|stop|track|transfer|trigger|yield"
)
"""Verbs whose plain form is mostly a noun or an adjective."""
_FINITE = (
    rf"(?:(?:{_AUXILIARY})(?!\s*$)|(?:{_SINGULAR})(?!\s+(?:than|of|between)\b)|(?<=s\s)(?:{_NOUNS})(?!\s+(?:of|in)\b)"
    rf"|(?!(?:{_NOUNS})\b)(?:{_PLURAL}))(?![\w-])"
)
_VERB = re.compile(
    rf"(?<![\w-])(?<!\b[aA]\s)(?<!\ban\s)(?<!\bthe\s)(?<!\bof\s)(?<!\bno\s)(?<!\bthat\s)(?<!\bwhich\s)(?<!\bwho\s)"
    rf"{_FINITE}",
    re.IGNORECASE,
)
"""A finite verb of a main clause: an auxiliary, or a present form that no article or relative pronoun precedes."""
_DOES = re.compile(rf"(?<![\w-])(?:{_SINGULAR})(?![\w-])", re.IGNORECASE)
"""A verb that is no auxiliary; "while" without one tells the time."""
_STARTS_WITH_VERB = re.compile(
    rf"^(?:(?:also|often|only|even|not|\w+ly)\s+)?(?:{_AUXILIARY}|{_SINGULAR}|{_PLURAL})(?![\w-])", re.IGNORECASE
)


def projected_claims(projection: str, items: int) -> list[str]:
    """Return the claims of a projection, in order: the clauses of its sentences, list items or lines.

    Only its first `MAX_ACTION_LENGTH` characters, and the words of `counted_claims` for ``items`` true claims, count.
    A second verb without a subject of its own gets the subject of the first.

    >>> projected_claims("This study finds that salt slows the dough, and that yeast raises it.", 2)
    ['salt slows the dough', 'yeast raises it']
    >>> projected_claims("Warm dough rises faster and keeps its shape, whereas cold dough does not change.", 2)
    ['Warm dough rises faster', 'Warm dough keeps its shape', 'cold dough does not change']
    """
    lines = projection[:MAX_ACTION_LENGTH].splitlines()
    marked = "\n".join(f"- {line.strip()}" if len(lines) > 1 and line.strip()[:1].isalpha() else line for line in lines)
    return [claim for sentence in counted_claims(marked, items) for claim in clauses(sentence)]


def clauses(sentence: str) -> list[str]:
    """Split one sentence into clauses."""
    body = _PREAMBLE.sub("", sentence.strip().rstrip("."))
    pieces = _pieces(body)
    found: list[str] = []
    subject = ""
    for piece in pieces:
        starts = bool(_STARTS_WITH_VERB.match(piece)) and subject
        found.append(f"{subject} {piece}" if starts else piece)
        if not starts:
            verb = _VERB.search(piece)
            subject = piece[: verb.start()].strip() if verb else ""
    return [piece for piece in found if len(piece.split()) >= MIN_CLAIM_WORDS]


def _pieces(body: str) -> list[str]:
    """Return the pieces of a sentence between those joints that end a clause."""
    pieces, start = [], 0
    for joint in _ends(body):
        pieces.append(body[start : joint.start()])
        start = joint.end()
    return [*pieces, body[start:]]


def _ends(body: str) -> list[re.Match[str]]:
    """Return the joints that end a clause; a mere comma does only in a list that a conjunction closes."""
    joints = [*_JOINT.finditer(body)]
    found: list[re.Match[str]] = []
    for joint, following in zip_longest(joints, joints[1:]):
        left = body[found[-1].end() if found else 0 : joint.start()]
        right = body[joint.end() : following.start() if following else len(body)]
        if _is_clause(left, joint.group()) and _starts_clause(right, joint.group(), body[joint.end() :]):
            found.append(joint)
    while found and found[-1].group().strip() == ",":
        found.pop()
    return found


def _is_clause(left: str, joint: str) -> bool:
    """Return whether the text before a joint can stand alone."""
    if _THAT.search(joint):
        return len(left.split()) >= MIN_CLAIM_WORDS
    needs_more = joint.strip() == "," and _OPENS.match(left) and "," not in left
    return bool(_VERB.search(left)) and not needs_more


def _starts_clause(right: str, joint: str, rest: str) -> bool:
    """Return whether the text behind a joint, up to the next joint or to the end, begins a clause."""
    if _THAT.search(joint):
        return True
    if _CONTINUES.match(right):
        return False
    if joint.strip().lower() == "while":
        return bool(_DOES.search(right))
    return bool(_STARTS_WITH_VERB.match(right) or _VERB.search(rest if _STRONG.search(joint) else right))
