"""Judged conclusions beside a run: one JSON Lines file per judge and its settings, appended as it happens."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.errors import InquiTreeError, JudgeError
from inquitree_gym.judges.llm import Ruling
from inquitree_gym.judges.quality import Judge, Verdict
from inquitree_gym.log import JsonlWriter, has_header
from inquitree_gym.trees import Tree
from inquitree_gym.trees.schema import CANARY

JUDGEMENTS = "judgements"
"""Folder of a run that holds them."""
JUDGEMENT_VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JudgeLine(_Line):
    """The first line: who judged."""

    kind: Literal["judge"] = "judge"
    judgement_version: int = JUDGEMENT_VERSION
    canary: str = CANARY
    judge: str
    config: dict[str, Any]
    """What decides the verdicts, beside tree and conclusion."""


class ItemVerdict(_Line):
    """What a judge found for one conclusion item."""

    item: str
    score: float | None
    """S in [0, 1]; None where the judge left it unscored."""
    why: str


class Judgement(_Line):
    """What a judge made of the conclusion of one episode."""

    kind: Literal["judgement"] = "judgement"
    episode: str
    """Name of the episode's log."""
    tree: str
    digest: str
    """Of the tree."""
    conclusion: str
    """SHA-256 of the conclusion that was judged."""
    verdicts: tuple[ItemVerdict, ...]
    """In tree order."""
    spent: dict[str, float] = {}
    """What it took, by the fields of `Spent`; zeros left out."""

    @property
    def unscored(self) -> int:
        """Items without a score."""
        return sum(verdict.score is None for verdict in self.verdicts)


class Judgements(NamedTuple):
    """Everything that one judge, with one setting, has judged of a run."""

    judge: str
    """The name of the judge; the same for several settings of one model."""
    config: dict[str, Any]
    by_episode: dict[str, Judgement]
    """By name of the episode's log; the newest judgement."""

    def of(self, episode: str, tree: Tree) -> Judge | None:
        """Return a judge that says again what was said of an episode, for `score_episode`.

        None where the episode was not judged on this tree.
        """
        found = self.by_episode.get(episode)
        return None if found is None or found.digest != tree.digest else _Recorded(self.judge, found)

    def item_scores(self) -> dict[tuple[str, str], tuple[float | None, ...]]:
        """Return the item scores by (tree id, name of the episode's log), for `agreement`."""
        return {
            (each.tree, name): tuple(verdict.score for verdict in each.verdicts)
            for name, each in self.by_episode.items()
        }


class _Recorded:
    """Says what was said before."""

    def __init__(self, name: str, judgement: Judgement) -> None:
        self.name = name
        self._judgement = judgement

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        if digest_of(conclusion) != self._judgement.conclusion:
            raise JudgeError(
                f"{self.name} judged another conclusion of {self._judgement.episode} than the one at hand; judge the "
                "run again"
            )
        return tuple(Verdict(each.score, each.why) for each in self._judgement.verdicts)


def read_judgements(run: str | os.PathLike[str]) -> list[Judgements]:
    """Return what judges have said of a run folder, ordered by file name; empty where none was asked.

    Raises:
        JudgeError: a file is damaged.
    """
    return [_read(file) for file in sorted(Path(run, JUDGEMENTS).glob("*.jsonl")) if has_header(file)]


def labelled(found: Sequence[Judgements]) -> dict[str, Judgements]:
    """Return judgements by the name of their judge, with a number after it where one judge has several settings."""
    names: Counter[str] = Counter()
    by_label = {}
    for each in found:
        names[each.judge] += 1
        by_label[each.judge if names[each.judge] == 1 else f"{each.judge} #{names[each.judge]}"] = each
    return by_label


class JudgementFile:
    """The judgements of one judge and setting on one run, to read and to add to."""

    def __init__(self, run: str | os.PathLike[str], judge: str, config: Mapping[str, Any]) -> None:
        """Open the file of this judge in the run folder ``run``, a new one where there is none yet.

        Raises:
            JudgeError: the file is damaged.
            LogError: it cannot be written, or another process is writing it.
        """
        line = JudgeLine(judge=judge, config=json.loads(json.dumps(dict(config))))
        self.path = Path(run, JUDGEMENTS, _file_name(line))
        self._writer = JsonlWriter(self.path, resume=True)
        try:
            if not self.path.stat().st_size:
                self._write(line)
            self.found = _read(self.path).by_episode
        except InquiTreeError:
            self._writer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()

    def holds(self, episode: str, tree: Tree, conclusion: str) -> bool:
        """Tell whether this conclusion was judged on this tree, with every item scored."""
        found = self.found.get(episode)
        said = found is not None and (found.digest, found.conclusion) == (tree.digest, digest_of(conclusion))
        return said and found is not None and not found.unscored

    def add(self, episode: str, tree: Tree, conclusion: str, ruling: Ruling) -> Judgement:
        """Append a ruling; the last one on an episode counts."""
        verdicts = tuple(
            ItemVerdict(item=item.id, score=verdict.score, why=verdict.why)
            for item, verdict in zip(tree.conclusions, ruling.verdicts, strict=True)
        )
        judgement = Judgement(
            episode=episode,
            tree=tree.id,
            digest=tree.digest,
            conclusion=digest_of(conclusion),
            verdicts=verdicts,
            spent={name: value for name, value in ruling.spent._asdict().items() if value},
        )
        self._write(judgement)
        self.found[episode] = judgement
        return judgement

    def _write(self, line: _Line) -> None:
        self._writer.write(cast(Any, line))


def digest_of(conclusion: str) -> str:
    """Return the SHA-256 of a conclusion."""
    return hashlib.sha256(conclusion.encode("utf-8", "replace")).hexdigest()


def _file_name(line: JudgeLine) -> str:
    """Name the file after the judge, and after all of its settings by their digest."""
    settings = hashlib.sha256(json.dumps(line.config, sort_keys=True).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', line.judge).strip('-')[:80]}-{settings}.jsonl"


def _read(file: Path) -> Judgements:
    *lines, _torn = file.read_bytes().split(b"\n")
    found: dict[str, Judgement] = {}
    head: JudgeLine | None = None
    for number, content in enumerate(lines, 1):
        try:
            # Not pydantic's own JSON reader: it refuses the lone surrogates that a model may give as its reason.
            document = json.loads(content)
            if head is None:
                head = JudgeLine.model_validate(document)
            else:
                judgement = Judgement.model_validate(document)
                found[judgement.episode] = judgement
        except ValueError as error:
            raise JudgeError(
                f"'{file}', line {number}: {_fault(error)}; remove the file and judge the run again (replies that were "
                "paid for come from the cache)"
            ) from error
    if head is None:
        raise JudgeError(f"'{file}' has no line that says who judged; remove it and judge the run again")
    return Judgements(head.judge, head.config, found)


def _fault(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"not JSON ({error})"
    first = error.errors(include_url=False)[0]
    return f"{first['msg']} at {first['loc']}"
