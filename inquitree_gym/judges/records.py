"""Judgements, and their files beside a run: one JSON Lines file per judge and settings."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import AliasChoices, Field

from inquitree_gym.errors import InquiTreeError, JudgeError
from inquitree_gym.judges.quality import Judge, Verdict, judge_label
from inquitree_gym.llm import Completion, Usage
from inquitree_gym.log import JsonlWriter, file_stem, has_header, read_records, settings_digest
from inquitree_gym.log.jsonl import JsonlRecord
from inquitree_gym.trees import Tree
from inquitree_gym.trees.fields import CANARY

K = TypeVar("K")
R = TypeVar("R", bound="JudgedRecord")

JUDGEMENTS = "judgements"
"""Folder in a run folder."""
JUDGEMENT_VERSION = 2


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of a chat model that judged a conclusion."""

    reply: Completion
    fault: str = ""
    """Fault in the reply; empty if it has a readable verdict on every item."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdicts on one conclusion."""

    verdicts: tuple[Verdict, ...]
    """One per conclusion item, in tree order."""
    usage: Usage = field(default_factory=Usage)
    unread: int = 0
    """Verdicts without a readable grade, one per item and request."""
    replies: tuple[JudgeReply, ...] = ()
    """Replies of a chat model behind the verdicts, in the order of the requests; empty for other judges."""


class JudgementHeader(JsonlRecord):
    """First line of a file of judgements: the judge."""

    kind: Literal["judge"] = "judge"
    judgement_version: int = JUDGEMENT_VERSION
    canary: str = CANARY
    judge: str
    config: dict[str, Any]
    """Settings that determine the verdicts, besides tree and conclusion."""


class VerdictRecord(JsonlRecord):
    """Verdict on one conclusion item."""

    item: str
    score: float | None
    """S in [0, 1]; None for an unscored item."""
    why: str


class JudgedRecord(JsonlRecord, ABC):
    """Judgement of one text of an episode."""

    @property
    @abstractmethod
    def unscored(self) -> int:
        """Number of its parts without a score."""


class JudgementRecord(JudgedRecord):
    """Judgement of the conclusion of one episode."""

    kind: Literal["judgement"] = "judgement"
    episode: str
    """File name of the episode's log."""
    tree: str
    digest: str
    """Digest of the tree."""
    conclusion: str
    """SHA-256 of the conclusion."""
    verdicts: tuple[VerdictRecord, ...]
    """In tree order."""
    usage: dict[str, float] = Field(default={}, validation_alias=AliasChoices("usage", "spent"))
    """Nonzero fields of `Usage`, and ``unread``; called ``spent`` in version 1, with ``asked`` for ``replies``."""

    @property
    def unscored(self) -> int:
        """Number of items without a score."""
        return sum(verdict.score is None for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judgements of one run by one judge with one configuration."""

    judge: str
    """Name of the judge, the same for all configurations of one model."""
    config: dict[str, Any]
    by_episode: dict[str, JudgementRecord]
    """The latest judgement of each episode, by file name of its log."""

    @property
    def version(self) -> int:
        """Version of the judge; 1 for judgements stored without one."""
        return version_of(self.config)

    def of(self, episode: str, tree: Tree) -> Judge | None:
        """Return a judge that repeats the judgement of an episode; None if it was not judged on this tree."""
        found = self.by_episode.get(episode)
        return None if found is None or found.digest != tree.digest else _RecordedJudge(self.judge, self.version, found)

    def item_scores(self) -> dict[tuple[str, str], tuple[float | None, ...]]:
        """Return the item scores by tree id and episode, for `agreement`."""
        return {
            (record.tree, episode): tuple(verdict.score for verdict in record.verdicts)
            for episode, record in self.by_episode.items()
        }


@dataclass(frozen=True, slots=True)
class _RecordedJudge:
    """Judge that repeats one judgement."""

    name: str
    version: int
    record: JudgementRecord

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        if text_digest(conclusion) != self.record.conclusion:
            raise JudgeError(
                f"{self.name} judged another conclusion of {self.record.episode} than the given one; "
                "judge the run again"
            )
        return tuple(Verdict(each.score, each.why) for each in self.record.verdicts)


def read_judgements(run: str | os.PathLike[str]) -> list[Judgements]:
    """Return the judgements of a run folder by every judge, ordered by file name.

    Raises:
        JudgeError: a file is damaged.
    """
    return [_read(file) for file in sorted(Path(run, JUDGEMENTS).glob("*.jsonl")) if has_header(file)]


def judgements_by_label(found: Sequence[Judgements]) -> dict[str, Judgements]:
    """Return judgements by name and version of their judge, numbered from its second configuration on."""
    labels: Counter[str] = Counter()
    by_label = {}
    for each in found:
        label = judge_label(each.judge, each.version)
        labels[label] += 1
        by_label[label if labels[label] == 1 else f"{label} #{labels[label]}"] = each
    return by_label


def version_of(config: Mapping[str, Any]) -> int:
    """Return the version of a judge with this configuration; 1 for one that names none."""
    return int(config.get("version", 1))


class JudgedFile(JsonlWriter, ABC, Generic[K, R]):
    """File of the judgements of one run by one judge with one configuration, to read and extend.

    A subclass sets the type of its records, their folder, and the key by which the latest record of a text is found.
    """

    folder = JUDGEMENTS
    """Folder of the files in a run folder."""

    def __init__(self, run: str | os.PathLike[str], judge: str, config: Mapping[str, Any]) -> None:
        """Open or create the file in the run folder ``run``.

        Raises:
            JudgeError: the file is damaged.
            LogError: it cannot be written, or another process is writing it.
        """
        header = JudgementHeader(judge=judge, config=json.loads(json.dumps(dict(config))))
        file = Path(run, self.folder, f"{file_stem(judge)}-{settings_digest(header.config)}.jsonl")
        super().__init__(file, resume=True, header=header)
        self.judge, self.config = judge, config
        try:
            self.found: dict[K, R] = {self.key(each): each for each in read_judged(file, self.record_type)[1]}
        except InquiTreeError:
            self.close()
            raise

    @property
    @abstractmethod
    def record_type(self) -> type[R]:
        """Class of the records."""

    @abstractmethod
    def key(self, record: R) -> K:
        """Return the key of the text that a record judges."""

    @abstractmethod
    def holds(self, key: K, about: Any, text: str) -> bool:
        """Return whether this text about a tree or task was judged, and no part of it is unscored."""

    @abstractmethod
    def add(self, key: K, about: Any, text: str, judgement: Any) -> R:
        """Append a judgement, which replaces earlier ones with its key, and return its record."""

    def keep(self, record: R) -> R:
        """Append a record, which replaces earlier ones with its key, and return it."""
        self.write(record)
        self.found[self.key(record)] = record
        return record

    def take_over(self, records: Iterable[R]) -> None:
        """Append the records of another file whose keys this one lacks."""
        for record in records:
            if self.key(record) not in self.found:
                self.keep(record)


class JudgementFile(JudgedFile[str, JudgementRecord]):
    """The judgements of the conclusions of one run by one judge with one configuration, by episode."""

    record_type = JudgementRecord

    def key(self, record: JudgementRecord) -> str:
        """Return the file name of the episode's log."""
        return record.episode

    def holds(self, key: str, about: Tree, text: str) -> bool:
        """Return whether this conclusion was judged on this tree and has no unscored item."""
        found = self.found.get(key)
        if found is None or found.unscored:
            return False
        return (found.digest, found.conclusion) == (about.digest, text_digest(text))

    def add(self, key: str, about: Tree, text: str, judgement: Judgement) -> JudgementRecord:
        """Append a judgement, which replaces earlier ones of the episode."""
        verdicts = tuple(
            VerdictRecord(item=item.id, score=verdict.score, why=verdict.why)
            for item, verdict in zip(about.conclusions, judgement.verdicts, strict=True)
        )
        record = JudgementRecord(
            episode=key,
            tree=about.id,
            digest=about.digest,
            conclusion=text_digest(text),
            verdicts=verdicts,
            usage=usage_counts(judgement.usage, judgement.unread),
        )
        return self.keep(record)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a judged text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def usage_counts(usage: Usage, unread: int) -> dict[str, float]:
    """Return the nonzero fields of a usage, and ``unread``, for a record."""
    return {name: value for name, value in {**asdict(usage), "unread": unread}.items() if value}


def read_judged(file: Path, record: type[R]) -> tuple[JudgementHeader, list[R]]:
    """Return the header and the records of a file of judgements.

    Raises:
        JudgeError: the file is damaged.
    """
    remedy = "remove the file and judge the run again (paid replies are taken from the cache)"
    return read_records(file, JudgementHeader, record, remedy=remedy, error=JudgeError)


def _read(file: Path) -> Judgements:
    header, records = read_judged(file, JudgementRecord)
    return Judgements(header.judge, header.config, {record.episode: record for record in records})
