"""Episode logs, one JSON Lines file per episode, and the JSON Lines store for them and other records.

A log has a header, one line per turn, preceded by its model replies, and a footer. A file without a footer is torn: it
can be resumed by replaying its actions, and is never scored. A torn last line is dropped on reading.
"""

from inquitree_gym.log.episode import Episode
from inquitree_gym.log.jsonl import JsonlWriter, file_stem, has_header, read_records, settings_digest, to_line
from inquitree_gym.log.reading import read_episode, read_header
from inquitree_gym.log.records import (
    LOG_VERSION,
    AlignmentRecord,
    EmbedderRef,
    EventRecord,
    Failure,
    Footer,
    Header,
    ProjectionRecord,
    ReadingRecord,
    Record,
    Reply,
    TaskKind,
    TaskRef,
    Turn,
)

__all__ = [
    "LOG_VERSION",
    "AlignmentRecord",
    "EmbedderRef",
    "Episode",
    "EventRecord",
    "Failure",
    "Footer",
    "Header",
    "JsonlWriter",
    "ProjectionRecord",
    "ReadingRecord",
    "Record",
    "Reply",
    "TaskKind",
    "TaskRef",
    "Turn",
    "file_stem",
    "has_header",
    "read_episode",
    "read_header",
    "read_records",
    "settings_digest",
    "to_line",
]
