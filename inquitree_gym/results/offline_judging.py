"""Judge the texts of logs offline. Judgements are stored beside the logs, and scores are computed from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inquitree_gym.errors import LogError
from inquitree_gym.judging.chosen import choose_judge
from inquitree_gym.judging.judgement import AsyncJudge, Judgement, version_of
from inquitree_gym.judging.registry import judge_all
from inquitree_gym.judging.stored import JudgementFile, Key
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.llm import Usage
from inquitree_gym.results.load import finished_episodes
from inquitree_gym.results.logs import AnyLogs, Missing, find_logs
from inquitree_gym.results.score import Score, make_score


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedText:
    """A text to judge."""

    name: str
    """Name in the judgements. For an episode, the file name of its log."""
    task: Any
    text: str
    turn: int = 1

    @property
    def key(self) -> Key:
        """Key of its judgement."""
        return self.name, self.turn


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """Outcome of one judge on some texts."""

    judge: str
    version: int
    judged: int
    """Texts judged now."""
    found: int
    """Texts judged before, with every part scored."""
    unscored: int
    """Parts of texts that remain without a score."""
    usage: Usage
    """Usage of this call. Equal texts about a task are judged once."""
    unread: int
    """Grades or replies of this call that could not be read."""
    faults: tuple[str, ...] = ()
    """Damaged lines and judgements in its file. Their texts were judged again."""


def stated_texts(
    logs: AnyLogs, task_kind: str = DEFAULT_KIND, on_damaged: Callable[[Missing], None] | None = None
) -> list[StatedText]:
    """Return the judged texts of the finished episodes of one kind in logs. See `finished_episodes` for the arguments.

    Raises:
        LogError: there is no log, a log is damaged, or there is no text to judge yet.
    """
    judging = kind(task_kind).judging
    stated = [
        StatedText(name=logged.entry.file.name, task=judging.about(logged.task, logged.episode), text=text, turn=turn)
        for logged in finished_episodes(logs, on_damaged=on_damaged)
        if logged.kind == task_kind
        for turn, text in judging.texts(logged.episode)
    ]
    if not stated:
        raise LogError(f"'{find_logs(logs).path}' holds no {judging.noun} to judge yet; run its study first")
    return stated


async def judge_texts(
    folder: str | os.PathLike[str],
    stated: Sequence[StatedText],
    judge: AsyncJudge[Any],
    max_concurrency: int,
    progress: Callable[[str], None],
    task_kind: str = DEFAULT_KIND,
) -> JudgingResult:
    """Judge every text that this judge has not fully scored yet, and store the judgements in ``folder``.

    Equal texts about a task are judged once. ``progress`` is called with the name of each text.

    Raises:
        LogError: judgements cannot be written.
        ServiceError: the judge's service answers no question at all. Judgements made until then are stored.
    """
    with JudgementFile(folder, judge.name, judge.config, task_kind) as file:
        missing = []
        for one in stated:
            if file.holds(one.key, one.task, one.text):
                progress(one.name)
            else:
                missing.append(one)
        by_text: dict[tuple[str, str], list[StatedText]] = {}
        for one in missing:
            by_text.setdefault((one.task.digest, one.text), []).append(one)
        groups = list(by_text.values())

        def store(index: int, judgement: Judgement[Any]) -> None:
            for number, one in enumerate(groups[index]):
                # Equal texts were judged once, so only the first one cost anything.
                counted = judgement if number == 0 else replace(judgement, usage=Usage(), unread=0, replies=())
                file.add(one.key, one.task, one.text, counted)
                progress(one.name)

        cases = [(group[0].task, group[0].text) for group in groups]
        judgements = await judge_all(judge.judge, cases, max_concurrency, store)
        return JudgingResult(
            judge=file.judge,
            version=version_of(file.config),
            judged=len(missing),
            found=len(stated) - len(missing),
            unscored=sum(file.by_turn[one.key].payload.unscored for one in stated),
            usage=sum((judgement.usage for judgement in judgements), Usage()),
            unread=sum(judgement.unread for judgement in judgements),
            faults=tuple(file.faults),
        )


def recorded_scores(
    logs: AnyLogs, judge: str, task_kind: str = DEFAULT_KIND, on_damaged: Callable[[Missing], None] | None = None
) -> list[Score[Any]]:
    """Return the scores of the episodes of one folder by a judge that has judged them.

    See `finished_episodes` for the other arguments.

    Raises:
        LogError: there is no log, or a log is damaged.
        JudgeError: the judge has not judged an episode, or its judgement is damaged.
    """
    logs = find_logs(logs)
    chosen = choose_judge(logs.path, judge, task_kind)
    return [
        make_score(each.episode, each.task, chosen.judged(each.entry.file.name, each.episode, each.task))
        for each in finished_episodes(logs, on_damaged=on_damaged)
        if each.kind == task_kind
    ]
