"""The decontextualised control: each true and each fake result alone, valid or not?

What an agent misses in the middle of an inquiry it may miss because nobody could tell, or because it did not look. Here
a model reads one result in the words that an agent reads in the loop (topic, subtopic, study, result) and nothing else,
and has only to say VALID or INVALID.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from inquitree_gym.analysis.aggregate import Player, by_player
from inquitree_gym.analysis.load import ScoredEpisode
from inquitree_gym.analysis.questions import AnswerFile, Asked, Key, Question, ask_all
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Chat
from inquitree_gym.llm.parsing import spoken
from inquitree_gym.prompts import Prompts
from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.vigilance import Trial, count, sensitivity, sensitivity_difference
from inquitree_gym.trees import Tree

PURPOSE = "probe"
TEMPLATES = ("probe_system", "probe_request", "result")
"""What the model is told; the last is what an agent reads in the loop."""

_VERDICT = re.compile(r"\bVERDICT\b[\s*_`]*[:：][\s*_`]*", re.IGNORECASE)
_WORD = re.compile(r"(?P<no>INVALID|NOT[\s-]+VALID)\b|(?P<yes>VALID)\b", re.IGNORECASE)
_EITHER = re.compile(r"\W*\bor\b", re.IGNORECASE)


class Item(NamedTuple):
    """One result of a tree."""

    tree: str
    """Id of the tree."""
    study: str
    fake: int
    """0 for the true result, i for the i-th fake."""


Doubts = dict[Item, float]
"""How often each item was doubted, as a share of the times that something was said of it."""


class Probe(NamedTuple):
    """What a model made of the results of some trees."""

    asked: Asked
    items: int
    doubts: Doubts
    """Of the items with at least one verdict."""
    unread: int
    """Answers without a verdict that can be read."""

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Hit rate, false-alarm rate, d′ and c; see `sensitivity`."""
        return sensitivity(count(as_trials(self.doubts)))


class Pair(NamedTuple):
    """One player's doubts in the loop beside those of the probe, on the items that both have."""

    player: Player
    items: int
    loop: dict[str, Estimate]
    alone: dict[str, Estimate]
    difference: dict[str, Estimate]
    """Loop − alone, tree by tree."""


def items_of(tree: Tree) -> list[Item]:
    """Return every result of a tree, each study's true one before its fakes."""
    return [Item(tree.id, study.id, fake) for study in tree.studies for fake in range(1 + len(study.fakes))]


async def probe(
    chat: Chat, trees: Sequence[Tree], folder: str | os.PathLike[str], repeats: int, max_concurrency: int,
    progress: Callable[[], None],
) -> Probe:  # fmt: skip
    """Ask a model about every result of some trees; what it has answered before is taken from ``folder``.

    Args:
        chat: the model, with a budget around it where there is one.
        trees: each with an id of its own.
        folder: holds one file of answers per model and setting.
        repeats: how often each item is asked about; the seed of a request is the number of its repetition.
        max_concurrency: questions that are asked at the same time.
        progress: told of every question once it is done with.

    Raises:
        OptionError: ``repeats`` or ``max_concurrency`` is below 1, or two trees share an id.
        ServiceError: the service will answer no question.
        LogError: answers cannot be read or written.
    """
    if repeats < 1:
        raise OptionError(f"every result is asked about at least once, not {repeats} times; give repeats from 1")
    ids = [tree.id for tree in trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(f"several trees have the id {', '.join(twins)}; give each an id of its own")
    prompts = Prompts(names=TEMPLATES)
    questions = {
        item: [_question(tree, item, repeat, prompts) for repeat in range(repeats)]
        for tree in trees
        for item in items_of(tree)
    }
    with AnswerFile(folder, PURPOSE, {"chat": chat.config, "prompts": prompts.digest}) as file:
        asked = await ask_all(
            chat, [each for several in questions.values() for each in several], file, max_concurrency, progress
        )
        verdicts = {
            item: [read_verdict(file.found[each.key].text) for each in several if each.key in file.found]
            for item, several in questions.items()
        }
    doubts = {item: fmean(read) for item, said in verdicts.items() if (read := [v for v in said if v is not None])}
    return Probe(asked, len(questions), doubts, sum(verdict is None for said in verdicts.values() for verdict in said))


def read_verdict(reply: str) -> bool | None:
    """Tell whether a reply doubts the result; None where its last verdict is neither VALID nor INVALID.

    >>> read_verdict("REASON: it says 'VERDICT: VALID' itself. VERDICT: INVALID"), read_verdict("VERDICT: unclear")
    (True, None)
    """
    *_, said = _VERDICT.split(spoken(reply))
    word = _WORD.match(said)
    if said == reply or word is None or _EITHER.match(said, word.end()):
        return None
    return word["no"] is not None


def as_trials(doubts: Mapping[Item, float]) -> Iterator[Trial]:
    """Yield one trial per item, however often it was asked about."""
    return (Trial(item.tree, item.fake > 0, doubt) for item, doubt in doubts.items())


def pair(alone: Doubts, episodes: Sequence[ScoredEpisode]) -> list[Pair]:
    """Set the probe beside every player of some episodes, on the items that both have.

    In the loop an item counts by the share of its first showings that were redone, over all episodes with fakes (a
    later showing can be compared with the one before, which the probe cannot). Clustered by tree.
    """
    return [_pair(player, loop_doubts(group), alone) for player, group in by_player(episodes).items()]


def loop_doubts(episodes: Sequence[ScoredEpisode]) -> Doubts:
    """Return how often each result was redone when it was shown for the first time in an episode with fakes."""
    answers: dict[Item, list[bool]] = {}
    for facts in episodes:
        for each in facts.exposures if facts.score.fake_level else ():
            if each.redone is not None and not each.before:
                answers.setdefault(Item(facts.score.tree, each.study, each.fake), []).append(each.redone)
    return {item: fmean(given) for item, given in answers.items()}


def _pair(player: Player, loop: Doubts, alone: Doubts) -> Pair:
    shared = [item for item in loop if item in alone]
    ours, theirs = (count(as_trials({item: doubts[item] for item in shared})) for doubts in (loop, alone))
    return Pair(player, len(shared), sensitivity(ours), sensitivity(theirs), sensitivity_difference(ours, theirs))


def _question(tree: Tree, item: Item, repeat: int, prompts: Prompts) -> Question:
    subtopic, study = next(
        (subtopic, study) for subtopic in tree.subtopics for study in subtopic.studies if study.id == item.study
    )
    text = study.fakes[item.fake - 1] if item.fake else study.result
    # As the result stands where the turn limit strikes: without the request for a decision.
    shown = prompts.render("result", study=study.text, result=text, limit=True)
    request = prompts.render("probe_request", topic=tree.topic, subtopic=subtopic.text, shown=shown)
    messages = [
        {"role": "system", "content": prompts.render("probe_system")},
        {"role": "user", "content": request},
    ]
    key: Key = (tree.digest, item.study, str(item.fake), str(repeat))
    return Question(key, messages, repeat)
