"""The episode log: one JSON Lines file per episode, the waist between playing and judging.

A header, then one line per turn, and before it one per reply of a service behind it, each appended and flushed as it
happens, then a footer. A file without a footer is torn: it can be resumed by replaying its actions, and is never
scored. A last line cut off in the middle is dropped on reading.
"""

from inquitree_gym.log.files import read_episode
from inquitree_gym.log.jsonl import JsonlWriter, file_stem, has_header, read_records, settings_digest, to_line
from inquitree_gym.log.records import (
    LOG_VERSION,
    EmbedderRef,
    Episode,
    Event,
    Failure,
    Footer,
    Header,
    Reading,
    Record,
    Reply,
    TreeRef,
    Turn,
)

__all__ = [
    "LOG_VERSION",
    "EmbedderRef",
    "Episode",
    "Event",
    "Failure",
    "Footer",
    "Header",
    "JsonlWriter",
    "Reading",
    "Record",
    "Reply",
    "TreeRef",
    "Turn",
    "file_stem",
    "has_header",
    "read_episode",
    "read_records",
    "settings_digest",
    "to_line",
]
