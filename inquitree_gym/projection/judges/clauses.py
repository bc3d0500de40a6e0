"""Split of a projection into claims: the clauses of its sentences that have a verb of their own."""

from __future__ import annotations

import re
from itertools import zip_longest

from inquitree_gym.judging.claims import MIN_CLAIM_WORDS, counted_claims
from inquitree_gym.text_limits import MAX_ACTION_LENGTH

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
"""Joint: a place where a clause may end."""
_STRONG = re.compile(r";|\bthat\b|\b(?:whereas|although|though|while|but|yet)\b", re.IGNORECASE)
"""A joint after which a new clause starts if it has any verb."""
_THAT = re.compile(r"\bthat\b", re.IGNORECASE)
_LIST_END = re.compile(r",\s*and\b", re.IGNORECASE)
_COMMA_LIST = 3
"""Number of commas from which clauses form a list even without a conjunction."""
_OPENS = re.compile(
    r"^(?:if|when|whenever|as|because|since|once|after|before|unless|until|although|though|even (?:if|though)|whereas"
    r"|while)\b",
    re.IGNORECASE,
)
"""Opening of a subordinate clause, which needs the main clause after its comma."""
_AWAITS = re.compile(r"\b(?:if|when|whether|between|because|both|either)\b", re.IGNORECASE)
"""Words after which "and" joins two nouns until a verb comes."""
_MODAL = re.compile(r"\b(?:will|would|should|may|might|can|ought|must)\b", re.IGNORECASE)
_CONTINUES = re.compile(r"^(?:which|who|whose|where|when|if|than|then|or|nor|not|rather|instead)\b", re.IGNORECASE)
"""Opening of a piece that belongs to the clause before it."""
_AUXILIARY = (
    r"is|are|was|were|has|have|had|does|do|did|will|would|can|cannot|could|may|might|should|must|won['’]t|doesn['’]t"
    r"|don['’]t|isn['’]t|aren['’]t|ought|shall|couldn['’]t|wouldn['’]t|shouldn['’]t|haven['’]t|hasn['’]t"
)
_STEMS = """
abolish absorb accelerate accompany account accumulate achieve acquire activate adapt add adjust adopt affect agree
aim align allow alter amplify answer appear approach arise arrive assign assist attenuate attract avoid balance bar
bear beat become begin behave believe benefit bias bind block boost break bring broaden build burst carry cause cease
change cluster code coincide collapse combine come compete complete compress concentrate confine connect conserve
consolidate constrain contain contribute converge convert copy correlate covary cover curb curtail cut damage dampen
decline decode decrease deepen deflect degrade delay deliver demand depend deposit depress detect deteriorate
determine deviate differ diminish discount displace display disrupt dissociate distort diverge divide dominate double
drive drop ease echo elevate eliminate emerge enable encode encourage end endure engage enhance enlarge enrich ensure
enter escape establish evoke evolve exceed excite exert exhibit expand explain extend facilitate fade fail fall favor
favour feed fire fit flip fluctuate follow forget form gain generalise generalize give go govern grow guide halt
hamper harm hasten help hinder hold hurt identify impair imply improve increase induce influence inform inhibit
integrate interact interfere invade join jump keep know lack lag lead learn leave lengthen lessen lie lift limit link
locate lose lower maintain make mark match matter mediate merge mimic mirror mislead mix modify modulate move narrow
need occur offset oppose organise organize originate outlast outnumber outpace outperform outweigh overlap overshoot
participate pass peak perform permit persist perturb pick play point power precede predict prefer prepare present
preserve prevent proceed produce prolong promote propagate protect prove provide pull push put raise reach react
reactivate read reappear rebound recall receive recognise recognize recover recreate recruit reduce refine reflect
regain reinforce relax release relocate rely remain remap remove repeat replace replay report represent reproduce
require rescue resemble reset reshape resist respond rest restart restore restrict result resume retain return reveal
reverse revert rise rotate rule run saturate scale scatter score seem select separate serve set settle shape share
sharpen shift shorten show shrink signal silence sink slip slow soften sort span spare speed spend split spread
stabilise stabilize stand start stay steer stem stick stimulate stop strengthen stretch strike substitute succeed suffer
suffice
supply support suppress surpass survive sustain swap switch take tell tend tie tighten tolerate track transfer
transmit travel treat trigger tune turn undergo underlie undermine undo unfold update upset use vanish vary violate
wander wane weaken widen win withstand work worsen yield
"""


def _third_person(stem: str) -> str:
    """Return the pattern of the form that goes with a singular subject."""
    return f"{stem[:-1]}ies" if stem.endswith("y") and stem[-2] not in "aeiou" else f"{stem}e?s"


_SINGULAR = "|".join(map(_third_person, _STEMS.split()))
_PLURAL = "|".join(_STEMS.split())
_NOUN_STEMS = """
account aim answer approach balance bar benefit bias block boost burst change cluster code complete copy cover cut
damage decline decrease delay demand deposit display double drive drop ease echo end fall fire fit flip form gain
guide harm help hold hurt increase influence interact jump lack lag lead lie lift limit link lower mark match matter
mirror mix move narrow need overlap pass peak pick play point power present pull push put reach rebound recall release
report rescue reset rest result return reverse rise rule run scale score separate set shape share shift show signal
sink slip slow sort span speed split spread stand start stem stick stop stretch strike supply support swap switch tie
track transfer travel treat trigger tune turn update upset use win work yield
"""
"""Verbs whose plain form is usually a noun or an adjective."""
_NOUNS = "|".join(_NOUN_STEMS.split())
_FINITE = (
    rf"(?:(?:{_AUXILIARY})(?!\s*$)|(?:{_SINGULAR})(?!\s+(?:than|of|between)\b)|(?<=s\s)(?:{_NOUNS})(?!\s+(?:of|in)\b)"
    rf"|(?!(?:{_NOUNS})\b)(?:{_PLURAL}))(?![\w-])"
)
_VERB = re.compile(
    rf"(?<![\w-])(?<!\b[aA]\s)(?<!\ban\s)(?<!\bthe\s)(?<!\bof\s)(?<!\bno\s)(?<!\bthat\s)(?<!\bwhich\s)(?<!\bwho\s)"
    rf"(?<!\bits\s)(?<!\btheir\s){_FINITE}",
    re.IGNORECASE,
)
"""A finite verb of a main clause: an auxiliary, or a present form that no article or relative pronoun precedes."""
_DOES = re.compile(rf"(?<![\w-])(?:{_SINGULAR})(?![\w-])", re.IGNORECASE)
"""A verb that is not an auxiliary. "while" without such a verb is about time."""
_STARTS_WITH_VERB = re.compile(
    rf"^(?:(?:also|often|only|even|not|then|still|\w+ly)\s+)?(?:{_AUXILIARY}|{_SINGULAR}|{_PLURAL})(?![\w-])",
    re.IGNORECASE,
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
    """Return the joints that end a clause. Commas do so if there are several, or if a conjunction closes their list."""
    joints = [*_JOINT.finditer(body)]
    found: list[re.Match[str]] = []
    for joint, following in zip_longest(joints, joints[1:]):
        left = body[found[-1].end() if found else 0 : joint.start()]
        right = body[joint.end() : following.start() if following else len(body)]
        if _is_clause(left, joint.group()) and _starts_clause(right, joint.group(), body[joint.end() :]):
            found.append(joint)
    if sum(joint.group().strip() == "," for joint in found) < _COMMA_LIST:
        while found and found[-1].group().strip() == ",":
            found.pop()
    return found


def _is_clause(left: str, joint: str) -> bool:
    """Return whether the text before a joint can stand alone."""
    if _THAT.search(joint) or ";" in joint:
        return len(left.split()) >= MIN_CLAIM_WORDS
    verbs = len(_VERB.findall(left))
    if _OPENS.match(left) and "," not in left and verbs < 2:
        return False
    return verbs > 0 and not (joint.strip().lower() in ("and", "and even") and _awaits_verb(left))


def _awaits_verb(left: str) -> bool:
    """Return whether a text ends within "if A", "between A" or the like, before any verb."""
    *_, last = [None, *_AWAITS.finditer(left)]
    return last is not None and not _VERB.search(left, last.end())


def _starts_clause(right: str, joint: str, rest: str) -> bool:
    """Return whether the text after a joint, up to the next joint or to the end, begins a clause."""
    if _THAT.search(joint) or ";" in joint:
        return True
    if _CONTINUES.match(right):
        return False
    if joint.strip().lower() == "while":
        return bool(_DOES.search(right) or _MODAL.search(right))
    is_cut = (
        bool(_LIST_END.search(joint)) and len(right.split()) <= MIN_CLAIM_WORDS
    )  # "…, and the latter, if …, will …"
    return bool(_STARTS_WITH_VERB.match(right) or _VERB.search(rest if is_cut or _STRONG.search(joint) else right))
