"""Results of the toy kind: the share of the words that were said."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

from inquitree_gym.judging.judgement import Judged
from inquitree_gym.log import Episode
from inquitree_gym.results.score import KindResults, Measure, Score
from tests.toy.tasks import WordList


class ToyDetail(NamedTuple):
    """Words that were said, of how many."""

    said: tuple[str, ...]
    words: int
    unscored: int


class ToyResults(KindResults[WordList, ToyDetail]):
    """Results of the toy kind; see `KindResults`."""

    measures = (Measure("share", lambda detail: len(detail.said) / detail.words, "share of the words", judged=True),)
    shown = ("share",)
    legend = "share: words that were said."

    def detail(self, episode: Episode[Any], task: WordList, judged: Judged) -> ToyDetail:
        heard = [judged.payloads.get(turn.turn) for turn in episode.turns]
        said = {word for words in heard for word in words or ()}
        return ToyDetail(tuple(word for word in task.words if word in said), len(task.words), heard.count(None))

    def unscored(self, detail: ToyDetail) -> int:
        return detail.unscored

    def plain(self, detail: ToyDetail) -> dict[str, Any]:
        return {"said": list(detail.said)}

    def page(self, score: Score[ToyDetail] | None, episode: Episode[Any], task: WordList) -> str:
        return "".join(f"<p>{escape(turn.action)}: {turn.event.left} left</p>" for turn in episode.turns)


RESULTS = ToyResults()
