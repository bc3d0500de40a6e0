"""Episode logs, one JSON Lines file per episode, and the JSON Lines store for them and other records.

A log has a header, one line per turn, preceded by its model replies, and a footer. A file without a footer is torn: it
can be resumed by replaying its actions, and is never scored. A torn last line is dropped on reading.
"""

from inquitree_gym.log.jsonl import JsonlWriter, file_stem, has_header, read_records, settings_digest, to_line
from inquitree_gym.log.records import (
    LOG_VERSION,
    Episode,
    Failure,
    Footer,
    Header,
    Reply,
    Setup,
    TaskRef,
    Turn,
    TurnEvent,
    read_episode,
    read_header,
)

__all__ = [
    "LOG_VERSION",
    "Episode",
    "Failure",
    "Footer",
    "Header",
    "JsonlWriter",
    "Reply",
    "Setup",
    "TaskRef",
    "Turn",
    "TurnEvent",
    "file_stem",
    "has_header",
    "read_episode",
    "read_header",
    "read_records",
    "settings_digest",
    "to_line",
]
