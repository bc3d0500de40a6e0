"""Stored judgements: one JSON Lines file per judge and settings, beside the logs of the judged episodes."""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, ValidationError, ValidationInfo, field_validator

from inquitree_gym.errors import DamagedJudgementError, InquiTreeError, JudgeError
from inquitree_gym.files import MAX_RECORDS, open_input
from inquitree_gym.judging.judgement import Judgement, version_of
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.log import JsonlWriter, file_stem, has_header, settings_digest
from inquitree_gym.log.jsonl import JsonlRecord, fault_of, line_fault, read_records
from inquitree_gym.trees.fields import CANARY

JUDGEMENTS = "judgements"
"""Folder in a run folder."""
JUDGEMENT_VERSION: Literal[1] = 1
MAX_HEADER = 1_000_000
"""Largest first line of a file, in bytes."""
_REMEDY = "remove the line and judge the run again (paid replies are taken from the cache)"

Key = tuple[str, int]
"""File name of an episode's log, and turn of the judged text."""


class Payload(JsonlRecord):
    """Base class of the stored grades of a judged text. Each kind of environment has its own."""

    @classmethod
    def of(cls, task: Any, judged: Any) -> Self:
        """Return the stored form of a judgement about a task. Raise `JudgeError` if it does not fit the task."""
        try:
            return cls._of(task, judged)
        except ValidationError as error:
            raise JudgeError(f"a judgement of {task.id} is out of range: {fault_of(error)}") from None

    @classmethod
    @abstractmethod
    def _of(cls, task: Any, judged: Any) -> Self:
        """See `of`. Pydantic's `ValidationError` reports a grade out of range."""

    @abstractmethod
    def check(self, task: Any) -> None:
        """Raise `JudgeError` unless this is the judgement of a text about a task."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """The payload as a judge returns it."""

    @property
    @abstractmethod
    def unscored(self) -> int:
        """Number of parts without a score."""

    @property
    def why(self) -> str:
        """Reason why the first such part has none. Empty if it is not stored."""
        return ""


class JudgementHeader(JsonlRecord):
    """First line of a file of judgements: the judge."""

    kind: Literal["judge"] = "judge"
    judgement_version: int = JUDGEMENT_VERSION
    canary: str = CANARY
    task_kind: str
    judge: str
    config: dict[str, Any]
    """Settings that determine the judgements, besides task and text."""

    @field_validator("judgement_version")
    @classmethod
    def _check_version(cls, version: int) -> int:
        if version != JUDGEMENT_VERSION:
            raise ValueError(f"judgement_version must be {JUDGEMENT_VERSION}, got {version}")
        return version

    @field_validator("task_kind")
    @classmethod
    def _check_kind(cls, task_kind: str) -> str:
        return kind(task_kind).name

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any]) -> dict[str, Any]:
        try:
            version_of(config)
        except JudgeError as error:
            raise ValueError(str(error)) from error
        return config


class JudgementRecord(JsonlRecord):
    """Judgement of one text of an episode."""

    kind: Literal["judgement"] = "judgement"
    episode: str
    """File name of the episode's log."""
    turn: int = Field(ge=1)
    task: str
    digest: str
    text: str
    """SHA-256 of the text."""
    payload: SerializeAsAny[Payload]
    usage: dict[str, float] = Field(default={})
    """Nonzero fields of `Usage`, and ``unread``."""

    @field_validator("payload", mode="before")
    @classmethod
    def _parse_payload(cls, payload: Any, info: ValidationInfo) -> Any:
        """Return the payload. A document is parsed with the model that the reader of the file was given."""
        if isinstance(payload, Payload) or info.context is None:
            return payload
        model: type[Payload] = info.context
        return model.model_validate(payload)

    @property
    def key(self) -> Key:
        """Key by which the latest judgement of a text is found."""
        return self.episode, self.turn

    def fits(self, task: Any, text: str) -> bool:
        """Tell whether this text about this task was judged."""
        return (self.digest, self.text) == (task.digest, text_digest(text))

    def check(self, task: Any, file: Path, remedy: str) -> None:
        """Raise `DamagedJudgementError`, which ends with a remedy, unless the payload fits the task."""
        try:
            self.payload.check(task)
        except JudgeError as error:
            raise DamagedJudgementError(
                f"'{file}': the judgement of turn {self.turn} of {self.episode} is damaged: {error}; {remedy}"
            ) from error


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judgements beside the logs of a folder by one judge with one configuration."""

    file: Path
    judge: str
    """Name of the judge, the same for all configurations of one model."""
    config: dict[str, Any]
    by_turn: dict[Key, JudgementRecord]
    """The latest judgement of each text."""
    faults: Sequence[str] = ()
    """Damaged lines of the file, which were left out."""

    @property
    def version(self) -> int:
        """Version of the judge. 1 for judgements stored without one."""
        return version_of(self.config)

    def of(self, key: Key, task: Any, text: str) -> Payload | None:
        """Return the stored payload about a text. None if this text about this task was not judged.

        Raises:
            DamagedJudgementError: the judgement does not fit the task.
        """
        record = self.by_turn.get(key)
        if record is None or not record.fits(task, text):
            return None
        record.check(task, self.file, "judge the run again")
        return record.payload


class StoredJudgements(NamedTuple):
    """The judgements beside the logs of a folder."""

    judges: dict[str, Judgements]
    """The newest judgements of each judge, by its name."""
    faults: list[str]
    """Files and lines that are damaged and were left out, one message each."""


def read_judgements(run: str | os.PathLike[str], task_kind: str = DEFAULT_KIND) -> StoredJudgements:
    """Return the judgements beside the logs of one kind of environment in a folder, by every judge.

    Of a judge that has judged with several settings, those that it was last asked with count. A file or line that is
    damaged is named and left out.

    Args:
        run: a run folder, or another folder with logs.
        task_kind: kind of environment.
    """
    headers: dict[str, tuple[Path, JudgementHeader]] = {}
    stored = StoredJudgements({}, [])
    for file in sorted(filter(Path.exists, Path(run, JUDGEMENTS).glob("*.jsonl")), key=_when_asked):
        try:
            if has_header(file) and (header := _read_header(file)).task_kind == task_kind:
                headers[header.judge] = file, header
        except InquiTreeError as error:
            stored.faults.append(str(error))
    for name, (file, header) in headers.items():
        faults: list[str] = []
        try:
            records = _read(file, task_kind, faults)
            stored.judges[name] = Judgements(file, name, header.config, records, faults)
        except InquiTreeError as error:
            faults.append(str(error))
        stored.faults.extend(faults)
    return stored


class JudgementFile(JsonlWriter):
    """The judgements beside the logs of a folder by one judge with one configuration, to read and extend."""

    def __init__(
        self, run: str | os.PathLike[str], judge: str, config: Mapping[str, Any], task_kind: str = DEFAULT_KIND
    ) -> None:
        """Open or create the file in a run folder.

        Args:
            run: the folder.
            judge: name of the judge.
            config: settings of the judge.
            task_kind: kind of environment of the judged episodes.

        Raises:
            JudgeError: the first line of the file is damaged.
            LogError: it cannot be written, or another process is writing it.
        """
        header = JudgementHeader(task_kind=task_kind, judge=judge, config=json.loads(json.dumps(dict(config))))
        digest = settings_digest({**header.config, "task_kind": task_kind})
        super().__init__(Path(run, JUDGEMENTS, f"{file_stem(judge)}-{digest}.jsonl"), resume=True, header=header)
        os.utime(self.path)  # this file holds the newest judgements of its judge, even if nothing is added
        self.judge, self.config = judge, header.config
        self.faults: list[str] = []
        """Damaged lines, which are left out, and damaged judgements that `holds` has found."""
        self._payload: type[Payload] = kind(task_kind).judging.payload
        try:
            self.by_turn = _read(self.path, task_kind, self.faults)
        except InquiTreeError:
            self.close()
            raise

    def holds(self, key: Key, task: Any, text: str) -> bool:
        """Tell whether this text about this task was judged, and no part of it is unscored."""
        record = self.by_turn.get(key)
        if record is None or not record.fits(task, text):
            return False
        try:
            record.check(task, self.path, "it is judged again")
        except DamagedJudgementError as error:
            self.faults.append(str(error))
            return False
        return not record.payload.unscored

    def add(self, key: Key, task: Any, text: str, judgement: Judgement[Any]) -> JudgementRecord:
        """Append a judgement, which replaces earlier ones of the text, and return its record.

        Raises:
            JudgeError: it does not fit the task.
            LogError: it cannot be written.
        """
        episode, turn = key
        usage = {**asdict(judgement.usage), "unread": judgement.unread}
        record = JudgementRecord(
            episode=episode,
            turn=turn,
            task=task.id,
            digest=task.digest,
            text=text_digest(text),
            payload=self._payload.of(task, judgement.payload),
            usage={name: value for name, value in usage.items() if value},
        )
        self.write(record)
        self.by_turn[key] = record
        return record


def text_digest(text: str) -> str:
    """Return the SHA-256 of a judged text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _when_asked(file: Path) -> tuple[int, str]:
    """Return a key that sorts files of judgements from the one whose judge was asked first to the last one."""
    return file.stat().st_mtime_ns, file.name


def _read_header(file: Path) -> JudgementHeader:
    """Return the first line of a file. Raise `JudgeError` if it is damaged or cannot be read."""
    with open_input(file, limit=MAX_RECORDS, error=JudgeError) as stream:
        line = stream.readline(MAX_HEADER)
    try:
        return JudgementHeader.model_validate(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise JudgeError(f"'{file}', line 1: {line_fault(error, _REMEDY)}") from None


def _read(file: Path, task_kind: str, faults: list[str]) -> dict[Key, JudgementRecord]:
    """Return the judgements in a file that can be read. Each damaged line is named in ``faults`` and left out."""
    _, records = read_records(
        file,
        JudgementHeader,
        JudgementRecord,
        remedy=_REMEDY,
        error=JudgeError,
        context=kind(task_kind).judging.payload,
        on_damaged=faults.append,
    )
    return {record.key: record for record in records}
