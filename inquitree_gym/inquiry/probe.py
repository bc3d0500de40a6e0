"""Probe: a model judges each true and fake result outside an inquiry, as VALID or INVALID.

An agent may miss a fake in the middle of an inquiry because nobody could tell, or because it did not look. In the mode
``context``, a model reads one result in the words of the loop (topic, subtopic, study, result) and nothing else. The
mode ``bare`` is the decontextualised control of the paper: the model reads the statement of the result alone, and is
asked whether it is scientifically valid.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from inquitree_gym.baselines.conversation import system, user
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.inquiry.results import EpisodeScore
from inquitree_gym.inquiry.vigilance import Trial, count, sensitivity, sensitivity_difference
from inquitree_gym.llm import Chat, Message, strip_thinking
from inquitree_gym.prompts import Prompts
from inquitree_gym.results.questions import AnswerFile, AskingResult, ask_questions, repeated
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import Player, by_player
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import actual_world, in_world

PURPOSE = "probe"
ProbeMode = Literal["context", "bare"]
TEMPLATES: dict[ProbeMode, tuple[str, ...]] = {
    "context": ("probe_system", "probe_request", "result"),
    "bare": ("probe_bare_system", "probe_bare_request"),
}
"""Templates of the request by mode. ``result`` is the one that agents read in the loop."""

_VERDICT = re.compile(r"\bVERDICT\b[\s*_`]*[:：][\s*_`]*", re.IGNORECASE)
_WORD = re.compile(r"(?P<no>INVALID|NOT[\s-]+VALID)\b|(?P<yes>VALID)\b", re.IGNORECASE)
_EITHER = re.compile(r"\W*\bor\b", re.IGNORECASE)


class ProbeItem(NamedTuple):
    """One result of a tree."""

    tree: str
    """Id of the tree."""
    study: str
    fake: int
    """0 for the true result, i for the i-th fake."""


Doubts = dict[ProbeItem, float]
"""Share of the verdicts on each item that doubt it, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A model's verdicts on the results of some trees."""

    mode: ProbeMode
    asked: AskingResult
    items: int
    doubts: Doubts
    """Doubts of the items with at least one readable verdict."""
    unread: int
    """Answers without a readable verdict."""

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Hit rate, false-alarm rate, their difference, d′ and c. See `sensitivity`."""
        return sensitivity(count(as_trials(self.doubts)))


@dataclass(frozen=True, slots=True)
class ProbeComparison:
    """One player's doubts in the loop beside those of the probe, over the items of both."""

    player: Player
    items: int
    loop: dict[str, Estimate]
    alone: dict[str, Estimate]
    difference: dict[str, Estimate]
    """Loop − alone, tree by tree."""


def probe_items(tree: Tree) -> list[ProbeItem]:
    """Return every result of a tree in its actual world, each study's true result before its fakes."""
    studies = in_world(tree, actual_world(tree)).studies
    return [ProbeItem(tree.id, study.id, fake) for study in studies for fake in range(len(study.outcomes))]


async def probe(
    chat: Chat, trees: Sequence[Tree], folder: str | os.PathLike[str], repeats: int, max_concurrency: int,
    progress: Callable[[], None], mode: ProbeMode = "context",
) -> ProbeResult:  # fmt: skip
    """Ask a model about every result of some trees.

    Args:
        chat: the model, budgeted if a cap applies.
        trees: each with a distinct id.
        folder: holds one answer file per model and configuration. Stored answers are not asked again.
        repeats: questions per item. The seed of a request is the number of its repetition.
        max_concurrency: questions asked at the same time.
        progress: called once per question. See `ask_questions`.
        mode: ``context`` shows topic, subtopic and study with each result, ``bare`` its statement alone.

    Raises:
        OptionError: ``repeats`` or ``max_concurrency`` is below 1, two trees share an id, or there is no such mode.
        ServiceError: the service answers no question at all.
        LogError: answers cannot be read or written.
    """
    ids = [tree.id for tree in trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(f"several trees have the id {', '.join(twins)}; give each an id of its own")
    if mode not in TEMPLATES:
        raise OptionError(f"the mode of a probe must be {' or '.join(get_args(ProbeMode))}, got {mode!r}")
    prompts = inquiry_prompts(names=TEMPLATES[mode])
    request = _bare_request if mode == "bare" else _request
    questions = {
        item: repeated((tree.digest, item.study, str(item.fake)), request(tree, item, prompts), repeats)
        for tree in trees
        for item in probe_items(tree)
    }
    with AnswerFile(folder, PURPOSE, {"chat": chat.config, "prompts": prompts.digest}) as file:
        series = [question for of_item in questions.values() for question in of_item]
        asked = await ask_questions(chat, series, file, max_concurrency, progress)
        verdicts = {
            item: [read_verdict(file.found[each.key].text) for each in of_item if each.key in file.found]
            for item, of_item in questions.items()
        }
    doubts = {item: fmean(read) for item, found in verdicts.items() if (read := [v for v in found if v is not None])}
    return ProbeResult(mode, asked, len(questions), doubts, sum(found.count(None) for found in verdicts.values()))


def read_verdict(reply: str) -> bool | None:
    """Return whether a reply doubts the result. None if its last verdict is neither VALID nor INVALID.

    >>> read_verdict("REASON: it says 'VERDICT: VALID' itself. VERDICT: INVALID"), read_verdict("VERDICT: unclear")
    (True, None)
    """
    *_, last = _VERDICT.split(strip_thinking(reply))
    word = _WORD.match(last)
    if last == reply or word is None or _EITHER.match(last, word.end()):
        return None
    return word["no"] is not None


def as_trials(doubts: Mapping[ProbeItem, float]) -> Iterator[Trial]:
    """Yield one trial per item, regardless of its number of verdicts."""
    return (Trial(item.tree, item.fake > 0, doubt) for item, doubt in doubts.items())


def compare_with_probe(alone: Doubts, scores: Sequence[EpisodeScore]) -> list[ProbeComparison]:
    """Compare every player of some episodes with the probe, over the items of both, clustered by tree.

    Args:
        alone: doubts in the probe.
        scores: see `loop_doubts`.
    """
    return [_comparison(player, loop_doubts(group), alone) for player, group in by_player(scores).items()]


def loop_doubts(scores: Sequence[EpisodeScore]) -> Doubts:
    """Return the share of each result's first exposures, over all episodes with fakes, that were redone.

    Later exposures are left out: they can be compared with the previous one, which the probe cannot.
    """
    redone: dict[ProbeItem, list[bool]] = {}
    for score in scores:
        for each in score.detail.exposures if score.cell["fake_level"] else ():
            if each.redone is not None and not each.before:
                redone.setdefault(ProbeItem(score.task, each.study, each.fake), []).append(each.redone)
    return {item: fmean(given) for item, given in redone.items()}


def _comparison(player: Player, loop: Doubts, alone: Doubts) -> ProbeComparison:
    shared = [item for item in loop if item in alone]
    ours, theirs = (count(as_trials({item: doubts[item] for item in shared})) for doubts in (loop, alone))
    return ProbeComparison(
        player, len(shared), sensitivity(ours), sensitivity(theirs), sensitivity_difference(ours, theirs)
    )


def _request(tree: Tree, item: ProbeItem, prompts: Prompts) -> list[Message]:
    subtopic, study = next(
        (subtopic, study) for subtopic in tree.subtopics for study in subtopic.studies if study.id == item.study
    )
    result = _statement(tree, item)
    # Rendered as at the turn limit: without the request for a decision.
    shown = prompts.render("result", study=study.text, result=result, limit=True, again=False)
    request = prompts.render("probe_request", topic=tree.topic, subtopic=subtopic.text, shown=shown)
    return [system(prompts.render("probe_system")), user(request)]


def _bare_request(tree: Tree, item: ProbeItem, prompts: Prompts) -> list[Message]:
    request = prompts.render("probe_bare_request", statement=_statement(tree, item))
    return [system(prompts.render("probe_bare_system")), user(request)]


def _statement(tree: Tree, item: ProbeItem) -> str:
    studies = in_world(tree, actual_world(tree)).studies
    return next(study.results[item.fake] for study in studies if study.id == item.study)
