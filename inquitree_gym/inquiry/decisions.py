"""Decisions in free text: exact tokens first, then phrases that mean a decision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from inquitree_gym.inquiry.engine import Decision

MAX_BARE_LENGTH = 80
"""Longest text, in characters, that can be a decision and nothing else."""
_CONTEXT = 240
"""Characters before a phrase that are searched for a negation."""

TOKENS = {"redo_study": Decision.REDO, "explore_new_subtopic": Decision.EXPLORE, "draw_conclusion": Decision.CONCLUDE}
_TOKEN = re.compile(rf"(?<![^\W_])(?:{'|'.join(TOKENS)})(?![^\W_])", re.IGNORECASE)

_GAP = r"[\s_\-\u2010\u2011*]{1,9}"
"""White space, underscores, hyphens or asterisks between two words."""
_WORDS = rf"(?:{_GAP}[\w']{{1,20}})"
_OWN = r"(?:the|a|an|this|that|my|our|your|these|those|its|very|same|exact|whole|entire|last|above|present)"
_MY = rf"(?:{_OWN}{_GAP}){{0,3}}"
_STUDY = (
    r"(?:stud(?:y|ies)|experiments?|measurements?|tests?|trials?|assays?|results?|findings?|observations?|analys[ie]s"
    r"|runs?|procedure|protocol|comparison|recordings?)"
)
_THEM = r"(?:it|this|that|them|these|those|this one|that one|the one)"
_AGAIN = rf"(?:(?:(?:once|over){_GAP})?again|once{_GAP}more|(?:one{_GAP}more|another|a{_GAP}second){_GAP}time|anew)"
_RERUN = (
    r"(?:re-?do(?:ing)?|re-?run(?:ning)?|repeat(?:ing)?|replicat(?:e|ing)|reproduc(?:e|ing)|re-?test(?:ing)?"
    r"|re-?measur(?:e|ing)|re-?examin(?:e|ing)|re-?check(?:ing)?|double[\s-]?check(?:ing)?|verify(?:ing)?"
    r"|confirm(?:ing)?)"
)
_RUN = (
    r"(?:run(?:ning)?|do(?:ing)?|perform(?:ing)?|conduct(?:ing)?|carry(?:ing)?(?:\s+out)?|try(?:ing)?|see(?:ing)?"
    r"|tak(?:e|ing)|check(?:ing)?|measur(?:e|ing)|test(?:ing)?|look(?:ing)?|show|execut(?:e|ing)|hav(?:e|ing))"
)
_OTHER = (
    rf"(?:{_MY}(?:(?:new|another|different|next|other|further|more|second|fresh|remaining|following|unexplored"
    rf"|yet|still|open|one|of|some|any|completely|entirely|rather|unrelated|related){_GAP}){{1,4}})"
)
_QUESTION = (
    rf"(?:(?:sub|research|open){_GAP})?(?:sub-?topics?|(?:sub-?)?questions?|topics?|aspects?|directions?|avenues?"
    r"|issues?|angles?|lines?|areas?|themes?|facets?|parts?|ones?\b)"
)
_TURN = (
    r"(?:explor(?:e|ing)|investigat(?:e|ing)|look(?:ing)?(?:\s+in)?(?:to|\s+at)|examin(?:e|ing)|pursu(?:e|ing)"
    r"|try(?:ing)?|tackl(?:e|ing)|address(?:ing)?|ask(?:ing)?|open(?:ing)?|pick(?:ing)?|choos(?:e|ing)|tak(?:e|ing)"
    r"|study(?:ing)?|select(?:ing)?|propos(?:e|ing)|consider(?:ing)?|see(?:ing)?"
    r"|(?:turn|mov|switch|shift|go|proceed|continu|chang|head|jump|pass|advanc|progress)(?:e|ing)?"
    r"(?:\s+(?:on|over|forward|ahead))?(?:\s+(?:to|with|into))?"
    r"|on(?:\s+|)to)"
)
_ELSE = r"(?:something|somewhere|anything)\s+(?:else|different|new)"
_FINAL = rf"(?:{_OWN}{_GAP}|(?:final|overall|numbered|main|closing|own|definite|general|some|first){_GAP}){{0,4}}"
_CLOSING = rf"(?:conclusions?(?!{_GAP}that\b)|write-?up|final{_GAP}(?:report|answer|statement|summary))"
_STATE = (
    r"(?:draw(?:ing)?|writ(?:e|ing)(?:\s+(?:up|down|out))?|giv(?:e|ing)|stat(?:e|ing)|submit(?:ting)?"
    r"|formulat(?:e|ing)|present(?:ing)?|finali[sz](?:e|ing)|mak(?:e|ing)|reach(?:ing)?|com(?:e|ing)\s+to"
    r"|(?:mov|go|proceed|turn|pass|jump|head|continu)(?:e|ing)?(?:\s+(?:on|straight|over|ahead))?\s+(?:to|with|into)"
    r"|deliver(?:ing)?|prepar(?:e|ing)|fil(?:e|ing)|compos(?:e|ing)|draft(?:ing)?|offer(?:ing)?|form(?:ing)?)"
)
_PROJECT = r"(?:projects?|investigations?|inquir(?:y|ies)|research|work|explorations?|episode|session|things|it|this)"
_STOP = (
    r"(?:finish(?:ing)?|end(?:ing)?|stop(?:ping)?|clos(?:e|ing)|wrap(?:ping)?\s+up|terminat(?:e|ing)|complet(?:e|ing))"
)
_HERE = r"(?:here|now|at\s+this\s+point|today)"
_CLAUSE_END = r"(?=[\s*_\"'”’)]*(?:[.,;:!?\n–—]|$))"
_CLAUSE_START = r"(?:(?<=^)|(?<=[.,;:!?\n–—*(]\s)|(?<=[.,;:!?\n–—*(]))"
_READY = r"(?:ready|time|want|wish|like|going|prepared|happy|prefer|choose|decide|decided|best|able|content|safe)"

_PHRASES = (
    rf"(?<![^\W_])(?:"
    rf"(?P<redo>{_RERUN}{_GAP}{_MY}(?:(?:unusual|odd|strange|previous|whole|suspicious|surprising){_GAP})?"
    rf"(?:{_STUDY}|{_THEM}(?!\s*:|{_GAP}(?:in|under|across|among|elsewhere|many|several)\b))"
    rf"|{_RUN}(?:{_GAP}(?:out|at))?{_GAP}(?:{_MY}(?:{_STUDY}|{_THEM})(?:{_GAP}(?:from{_GAP}scratch|all))?{_GAP})?{_AGAIN}"
    rf"|(?:another|an?|one{_GAP}more){_GAP}(?:(?:second|third|new|fresh|further|independent|direct|exact|full){_GAP}){{0,2}}"
    rf"(?:replication|repetition|re-?run|redo)"
    rf"|(?:another|an?{_GAP}(?:second|third|new|fresh)|one{_GAP}more){_GAP}(?:run|measurement|trial|look|attempt|try)"
    rf"|(?:hav(?:e|ing)|want|need|like|see|get|getting){_GAP}{_MY}(?:{_STUDY}|{_THEM}){_GAP}"
    rf"(?:(?:to{_GAP}be|being){_GAP})?(?:repeated|redone|replicated|reproduced|re-?run|(?:done|run|measured|checked|tested|made){_GAP}{_AGAIN})"
    rf"|(?:do|doing|start|starting){_GAP}{_THEM}{_GAP}over"
    rf"|{_CLAUSE_START}(?:re-?do|re-?run|repeat|replicate|(?:again|once{_GAP}(?:more|again))(?!\s*:)){_CLAUSE_END}"
    rf"|(?:to|will|'ll|must|should|me|us|'d){_GAP}(?:rather{_GAP})?(?:re-?do|re-?run|repeat|replicate){_CLAUSE_END})"
    rf"|(?P<conclude>{_STATE}{_GAP}{_FINAL}{_CLOSING}"
    rf"|(?:report|writ(?:e|ing)\s+(?:up|down)|summari[sz](?:e|ing)|publish){_GAP}{_FINAL}"
    rf"(?:findings|results|everything|study|project|report)"
    rf"|(?:writ(?:e|ing){_GAP}(?:(?:it|this|everything|things|all){_GAP}){{0,2}}up){_CLAUSE_END}"
    rf"|conclud(?:e|ing){_GAP}(?:with{_GAP})?{_MY}{_PROJECT}"
    rf"|conclud(?:e|ing)(?=[\s*_]+{_HERE})"
    rf"|{_READY}{_GAP}(?:to|for|on)?{_GAP}?conclud(?:e|ing){_CLAUSE_END}"
    rf"|(?:let|let's|me|us|i|we|will|'ll|to|can|must|should|now|rather){_GAP}(?:now{_GAP})?conclude{_CLAUSE_END}"
    rf"|{_CLAUSE_START}(?:conclude|finish|stop|done|the{_GAP}end){_CLAUSE_END}"
    rf"|(?:i|we|i'm|we're|am|are){_GAP}(?:all{_GAP}|now{_GAP})?(?:done|finished|through){_CLAUSE_END}"
    rf"|on{_GAP}to{_GAP}{_FINAL}{_CLOSING}"
    rf"|{_STOP}{_GAP}{_MY}{_PROJECT}(?:{_GAP}up)?{_CLAUSE_END}"
    rf"|{_STOP}{_GAP}{_MY}(?:projects?|investigations?|inquir(?:y|ies)|research|exploration)"
    rf"|{_STOP}(?=[\s*_]+{_HERE})|(?:wrap(?:ping)?{_GAP}(?:(?:it|this|things|everything){_GAP})?up)"
    rf"|{_READY}{_GAP}to{_GAP}(?:finish|stop|end){_CLAUSE_END})"
    rf"|(?P<explore>{_TURN}{_GAP}{_OTHER}{_QUESTION}|{_TURN}{_GAP}{_ELSE}"
    rf"|(?:go(?:ing)?|head(?:ing)?|get(?:ting)?|com(?:e|ing)|step(?:ping)?|return(?:ing)?){_GAP}(?:back{_GAP})?to{_GAP}"
    rf"{_MY}(?:main{_GAP}|research{_GAP}|overall{_GAP})?topic"
    rf"|{_CLAUSE_START}back{_GAP}to{_GAP}{_MY}topic"
    rf"|{_CLAUSE_START}{_OTHER}{_QUESTION}(?={_GAP}please){_WORDS}|{_CLAUSE_START}{_OTHER}{_QUESTION}{_CLAUSE_END}"
    rf"|(?:mov(?:e|ing)|go(?:ing)?|carry(?:ing)?){_GAP}on{_CLAUSE_END}"
    rf"|(?:keep|continue|go{_GAP}on){_GAP}(?:to{_GAP})?explor(?:e|ing)"
    rf"|explor(?:e|ing){_GAP}(?:further|more|on){_CLAUSE_END})"
    rf")(?![^\W_])"
)
_DECISIONS = {"redo": Decision.REDO, "conclude": Decision.CONCLUDE, "explore": Decision.EXPLORE}

_BOUNDARY = re.compile(r"[.!?;:\n–—](?=\W|$)")
_BREAK = re.compile(
    r",|\b(?:and|but|so|then|therefore|thus|hence|however|yet|still|let|please|because|since|makes?|which"
    r"|instead(?! of)|rather(?! than))\b"
    r"|(?<!think )(?<!believe )(?<!feel )(?<!sure )(?<!that )(?<!why )(?<!before )(?<!until )(?<!after )(?<!once )"
    r"(?<!when )(?<!can )(?<!could )(?<!should )(?<!may )(?<!might )\b(?:I|we)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"(?:\b(?:not|cannot|no|nor|neither|never|none|nothing|without|avoid\w*|skip\w*|refrain\w*|against|unnecessary"
    r"|needless|pointless|premature|unwise|unable|impossible|hesita\w+|reluctant|refus\w+|declin\w+|insufficient|hardly"
    r"|hold off|too (?:early|soon|weak|noisy|little|few|much|thin)|far from|(?:hard|difficult) to|tempted|(?:was|were)"
    r" (?:about|going|planning|inclined)|considered|thought (?:was|of|about)|waste\w*"
    r"|needs? (?:more|further|better|additional|another|stronger)|instead of|rather than|than|wanted|lacks?)\b"
    r"|n't\b)(?!\s+only)(?:\W+[\w']+){0,8}\W*$",
    re.IGNORECASE,
)
_NOT_NEGATION = re.compile(r"\bwhy (?:not|don't (?:we|I))\b|\bno doubt\b|\bnot (?:hesitate|only)\b", re.IGNORECASE)
_FIRST_ONLY = re.compile(
    r"\b(?:before|until|prior to|once|when(?:ever)?|as soon as|by the time|without|instead of|rather than|than)\b"
    r"(?:\W+[\w']+){0,6}\W*$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\b(?:after|having)\W*(?:[\w']+\W+){0,2}$", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?<!as )(?<!see )(?<!check )(?<!know )(?<!test )(?<!learn )(?<!out )(?<!tell )"
    r"(?:if(?! (?:i may|possible|allowed|you))|unless|whether|had (?:i|we|the|it|this|that)|were (?:i|we|it)|suppos\w+"
    r"|assuming|provided|when everything|once (?:everything|this|it|all|i|we))\b",
    re.IGNORECASE,
)
_END_OF_CONDITION = re.compile(r"\b(?:but|however|so|therefore|hence|still|for now|meanwhile)\b", re.IGNORECASE)
_MODAL = re.compile(
    r"\b(?:could|might|may|would have|would've|should have)\b(?! as well)(?:\W+(?!be\b)[\w']+){0,2}\W*$", re.IGNORECASE
)
_PURPOSE = re.compile(r"^\W*(?:in order )?to\W+$", re.IGNORECASE)
_CLAUSE_STOP = re.compile(r"[\W_]*$|[\W_]*\n")
_REQUEST = re.compile(
    r"^\W*(?:\w+\W+)?(?:(?:could|can|may|shall) (?:i|we|you)|(?:would|will) you|why not|why don't|how about|what about"
    r"|what if|let|please)\b",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(
    r"^\W*(?:(?:and|but|so|or)\W+)?(?:what|how|does|do|did|is|are|was|were|would|should|which|why|when|where|who|has|have)"
    r"\b",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"^\W{0,3}(?:(?:now|here|yet|again|either|at this (?:point|stage)|from (?:this|it))\W+)?"
    r"(?:would|is|are|isn't|seems?|looks?|feels?|can|can't|makes?|adds?|has|will|won't|wouldn't|cannot|was|brings?|gains?)"
    r"\b[^.,;\n]{0,40}?(?:\b(?:not|no|nothing|little|premature|pointless|waste\w*|unnecessary|redundant|superfluous"
    r"|needless|early|wait|later|overkill|excessive|unwise|risky|foolish|useless|hasty)\b|n't\b)"
    r"|^\W{0,3}(?:isn't|is not|cannot|can't|won't|wouldn't)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"^\W{0,3}(?:(?:only|but|just) )?(?:later|afterwards?|eventually|in the end|at the end|once(?! more| again)"
    r"|when|if|unless|after)\b",
    re.IGNORECASE,
)
_THEN = re.compile(r"\b(?:then|after that|afterwards?|later|finally|subsequently|eventually)\b\W*(?:[\w']+\W+){0,3}$",
                   re.IGNORECASE)  # fmt: skip
_LIST_GAP = re.compile(r"""^(?:[\s"'“”‘’`*,/()]|\d+\.|\b(?:and|or|nor|to|either)\b){0,40}$""", re.IGNORECASE)
_OR, _JOINED = (re.compile(rf"\b(?:{words})\b|/", re.IGNORECASE) for words in ("or|nor", "or|nor|and"))
_REPEAT = re.compile(
    r"\b(?:again|once more|another time|repeat\w*|re-?do(?:es|ing|ne)?|re-?did|re-?run\w*|re-?test\w*|re-?measur\w*"
    r"|replicat\w*|double[- ]check\w*|verif\w+)\b",
    re.IGNORECASE,
)
_OPENING, _CLOSING_QUOTES = "\"'“‘`«„", "\"'”’`»“"

_FILLER = re.compile(
    r"\b(?:i|we|want|wish|to|would|will|like|please|let|lets|me|us|now|the|my|a|an|this|that|decision|decide|action|ok"
    r"|okay|so|then|ready|time|and|is|it|its|here|am|m|ll|d|s|re|choose|prefer|rather|think|yes|well|next|move|go|can"
    r"|at|point|am|are|have|enough|evidence|do|with|for|instead|just|once|more|again|going|in|one|no|by|all|final)\b"
    r"|[^\w]|_",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"^\W*(?:no\W+)?(?:(?:sorry|but|oh|ah|hm+|wait)\W+)*"
    r"(?:(?:this|that|it)(?:'s|\W+is|\W+was|\W+isn't|\W+wasn't)?\W+)?"
    r"(?:not\W+(?:quite\W+|really\W+|at\W+all\W+)?)?"
    r"(?:(?:what|the\W+(?:one|question|subtopic))\W+(?:that\W+)?(?:i|we)\W+(?:had\W+)?"
    r"(?:meant|mean|wanted|asked(?:\W+for)?|proposed|had\W+in\W+mind)"
    r"|(?:my|the\W+right)\W+(?:question|subtopic|proposal|idea)|(?:the\W+)?wrong\W+(?:subtopic|question|one))"
    r"(?:\W+(?:at\W+all|here|though|sorry|to\W+ask))?\W*$",
    re.IGNORECASE,
)
_NEGATIVE_OR_WRONG = re.compile(r"\bnot\b|n't\b|\bwrong\b", re.IGNORECASE)


@cache
def _phrases() -> re.Pattern[str]:
    """Compile the phrases on first use, since that takes longer than importing the module."""
    return re.compile(_PHRASES, re.IGNORECASE)


class _Phrase(NamedTuple):
    """A phrase that means a decision, with the span of it in the text."""

    decision: Decision
    start: int
    end: int
    quoted: bool


def read_decision(text: str, *, tokens_only: bool = False) -> Decision:
    """Return the decision that ``text`` makes, or `Decision.NONE`.

    The last exact token (`TOKENS`) counts, in any case. Without a token, and unless ``tokens_only``, it is the last
    phrase that means a decision and is not negated, hypothetical, put off until later or merely quoted.
    """
    if tokens := _TOKEN.findall(text):
        return TOKENS[tokens[-1].lower()]
    if tokens_only:
        return Decision.NONE
    text = text.replace("’", "'")
    now: list[Decision] = []
    later: list[Decision] = []
    quoted: list[Decision] = []
    for phrase, put_off in _meant(text):
        (quoted if phrase.quoted else later if put_off and now else now).append(phrase.decision)
    if decisions := now or later:
        return decisions[-1]
    return quoted[-1] if len(set(quoted)) == 1 else Decision.NONE


def asks_to_repeat(text: str) -> bool:
    """Return whether ``text`` speaks of repeating something, which is not a request for a new subtopic."""
    return _REPEAT.search(text) is not None


def bare_decision(text: str, *, tokens_only: bool = False) -> Decision:
    """Return the decision of a text that says nothing else, such as "I want to draw a conclusion now", or NONE."""
    if len(text) > MAX_BARE_LENGTH or not (decision := read_decision(text, tokens_only=tokens_only)):
        return Decision.NONE
    rest = _phrases().sub(" ", _TOKEN.sub(" ", text.replace("’", "'")))
    return Decision.NONE if _FILLER.sub("", rest) else decision


def declines(text: str) -> bool:
    """Return whether ``text`` says that a subtopic is not the one that was meant, and nothing else."""
    text = text.replace("’", "'")
    return len(text) <= MAX_BARE_LENGTH and bool(_DECLINED.match(text) and _NEGATIVE_OR_WRONG.search(text))


def _meant(text: str) -> Iterator[tuple[_Phrase, bool]]:
    """Yield the phrases of ``text`` that are meant as decisions, and whether each is put off until later."""
    before = 0
    for group in _groups(text):
        different = len({phrase.decision for phrase in group}) > 1
        options = different and (group[0].quoted or _OR.search(text[group[0].end : group[-1].start]))
        if not options and _is_meant(text, before, group[0], group[-1].end):
            for phrase in group:
                lead = _lead(text, before, phrase.start)
                yield phrase, bool(_THEN.search(lead) or _LATER.match(text[phrase.end : phrase.end + 40]))
        before = group[-1].end


def _groups(text: str) -> list[list[_Phrase]]:
    """Return the phrases of ``text``, those of an enumeration together."""
    groups: list[list[_Phrase]] = []
    for found in _phrases().finditer(text):
        phrase = _Phrase(_DECISIONS[found.lastgroup or ""], found.start(), found.end(), _is_quoted(text, found))
        if groups and _LIST_GAP.match(text[groups[-1][-1].end : phrase.start]):
            groups[-1].append(phrase)
        else:
            groups.append([phrase])
    return [part for group in groups for part in ([group] if _is_list(text, group) else [[each] for each in group])]


def _is_list(text: str, group: list[_Phrase]) -> bool:
    """Return whether successive phrases are an enumeration, which commas alone do not show."""
    return group[0].quoted or bool(_JOINED.search(text[group[0].end : group[-1].start]))


def _is_quoted(text: str, found: re.Match[str]) -> bool:
    before, after = text[: found.start()][-3:].rstrip("* _"), text[found.end() : found.end() + 3].lstrip("* _.,;:!?")
    return before[-1:] in _OPENING and after[:1] in _CLOSING_QUOTES and bool(before and after)


def _is_meant(text: str, before: int, phrase: _Phrase, end: int) -> bool:
    """Return whether a phrase is neither negated nor hypothetical. ``before`` is the end of the one before it."""
    sentence = _lead(text, 0, phrase.start)
    after = text[end : end + 80]
    condition = _END_OF_CONDITION.split(sentence)[-1]
    lead = _BREAK.split(sentence if before <= phrase.start - len(sentence) else text[before : phrase.start])[-1]
    lead = _NOT_NEGATION.sub(" ", lead or "")
    stop = _BOUNDARY.search(text, end, end + _CONTEXT)
    asked = after.lstrip("\"'”’`* ")[:1] == "?" or (
        stop is not None and text[stop.start()] == "?" and _QUESTION_WORD.match(sentence)
    )
    question = asked and not _REQUEST.match(sentence)
    return not (
        question
        or _NEGATION.search(lead)
        or _FIRST_ONLY.search(lead)
        or (_AFTER.search(lead) and before <= phrase.start - len(sentence))
        or _CONDITION.search(condition)
        or (_MODAL.search(lead) and not _REQUEST.match(sentence))
        or (_PURPOSE.match(sentence) and not _CLAUSE_STOP.match(after))
        or _REFUTED.match(after)
    )


def _lead(text: str, start: int, end: int) -> str:
    """Return the part of the sentence before ``end``, from ``start`` on and of bounded length."""
    return _BOUNDARY.split(text[max(start, end - _CONTEXT) : end])[-1]
