"""Observations, rendered as text and laid out as rows of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.engine import Engine, Event, Kind, Phase
from inquitree_gym.errors import OptionError
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import HINT_LEVELS, Tree

FeatureRow = NDArray[np.float32]

MAX_OBSERVATION = 16_384
"""Longest observation, in characters."""

_TEMPLATES = {
    Kind.START: "start",
    Kind.TOPIC: "topic",
    Kind.SUBTOPIC: "subtopic",
    Kind.STUDY: "study",
    Kind.RESULT: "result",
    Kind.SUBTOPIC_HINT: "subtopic_hint",
    Kind.STUDY_HINT: "study_hint",
    Kind.ASK_AGAIN: "ask_again",
    Kind.CONCLUSION: "conclusion",
    Kind.END: "end",
}

_DECISIONS: dict[str, dict[str, object]] = {
    "phrases": {"redo": "redo the study", "explore": "explore new subtopic", "conclude": "draw conclusion"},
    "tokens": {"redo": "redo_study", "explore": "explore_new_subtopic", "conclude": "draw_conclusion"},
}
"""Words that the texts ask for, by the rule ``decisions``."""


class ObservationKey(NamedTuple):
    """Everything that the text of an observation depends on."""

    kind: Kind
    node: int = -1
    hint_level: int = 0
    fake: int = 0
    limit: bool = False

    def plain(self) -> ObservationKey:
        """Return the canonical key: keys of the same text become equal."""
        if self.limit and self.kind != Kind.RESULT:
            return LIMIT
        return self._replace(node=-1) if self.kind == Kind.ASK_AGAIN else self


LIMIT = ObservationKey(Kind.TOPIC, limit=True)
"""Key of the limit prompt, shown in every phase but RESULT."""


class ObservationRenderer:
    """Renderer of the observation texts of one tree; each text is rendered once."""

    def __init__(self, tree: Tree, prompts: Prompts, engine: Engine) -> None:
        """Bind a tree to templates; the rules and the turn limit of ``engine`` are told in the texts."""
        self._tree = tree
        self._prompts = prompts
        self._turn_limit = engine.turn_limit
        self._decisions = _DECISIONS[engine.rules.decisions]
        self._rendered: dict[tuple[int, int, int, int, bool], str] = {}

    def render(self, event: Event) -> str:
        """Return the text of ``event``.

        Raises:
            OptionError: a template produces more than `MAX_OBSERVATION` characters.
        """
        key = (event.kind, event.node, event.hint_level, event.fake, event.limit)
        text = self._rendered.get(key)
        if text is None:
            text = self._rendered[key] = self.render_key(ObservationKey(*key))
        return text

    def render_key(self, key: ObservationKey) -> str:
        """Return the text of ``key``, uncached; see `render` for the errors."""
        key = key.plain()
        name = _TEMPLATES[key.kind]
        parts = [] if key == LIMIT else [self._prompts.render(name, **self._values(key))]
        if key.limit:
            parts.append(self._prompts.render("limit"))
        text = "\n\n".join(parts)
        if len(text) > MAX_OBSERVATION:
            raise OptionError(f"template '{name}.md' makes {len(text):,} characters; at most {MAX_OBSERVATION:,} fit")
        return text

    def _values(self, key: ObservationKey) -> dict[str, object]:
        tree, node = self._tree, key.node
        match key.kind:
            case Kind.START:
                return {"topic": tree.topic, "turns": self._turn_limit, **self._decisions}
            case Kind.TOPIC:
                return {"topic": tree.topic, "turns": self._turn_limit}
            case Kind.ASK_AGAIN:
                return self._decisions
            case Kind.SUBTOPIC:
                return {"subtopic": tree.subtopics[node].text}
            case Kind.STUDY:
                return {"study": tree.studies[node].text}
            case Kind.RESULT:
                study = tree.studies[node]
                shown = (study.result, *study.fakes)[key.fake]
                return {"study": study.text, "result": shown, "limit": key.limit, **self._decisions}
            case Kind.SUBTOPIC_HINT:
                return _hint(tree.subtopics[node].hints, key.hint_level)
            case Kind.STUDY_HINT:
                return _hint(tree.studies[node].hints, key.hint_level)
        return {}


def observation_keys(tree: Tree) -> Iterator[ObservationKey]:
    """Yield the canonical keys of all texts of ``tree``, the opening first."""
    yield from map(ObservationKey, (Kind.START, Kind.TOPIC, Kind.ASK_AGAIN, Kind.CONCLUSION, Kind.END))
    yield LIMIT
    for node, _ in enumerate(tree.subtopics):
        yield ObservationKey(Kind.SUBTOPIC, node)
        yield from (ObservationKey(Kind.SUBTOPIC_HINT, node, level) for level in range(1, HINT_LEVELS + 1))
    for node, study in enumerate(tree.studies):
        yield ObservationKey(Kind.STUDY, node)
        yield from (ObservationKey(Kind.STUDY_HINT, node, level) for level in range(1, HINT_LEVELS + 1))
        for fake in range(len(study.fakes) + 1):
            yield from (ObservationKey(Kind.RESULT, node, 0, fake, limit) for limit in (False, True))


def _hint(hints: tuple[str, ...], level: int) -> dict[str, object]:
    return {"hint": hints[level - 1], "level": level, "levels": HINT_LEVELS}


@dataclass(frozen=True)
class FeatureLayout:
    """Layout of a feature row: phase (one-hot), hint level (of H), visited subtopics (0 or 1), text embedding.

    The text embedding has unit length. With ``text_dim`` below ``dim`` it is the first coefficients of the orthonormal
    cosine transform (DCT-II) of the embedding, scaled to about unit length: a fixed projection that roughly keeps
    angles.
    """

    subtopics: int
    """Slots for visited subtopics."""
    dim: int
    """Length of the embedder's vectors."""
    text_dim: int
    """Length of the text part; at most ``dim``."""

    @classmethod
    def create(cls, subtopics: int, dim: int, text_dim: int | None) -> FeatureLayout:
        """Return a layout; ``text_dim`` None keeps the whole embedding.

        Raises:
            OptionError: ``subtopics`` is no integer from 1, or ``text_dim`` is neither None nor an integer from 1 to
                ``dim``.
        """
        if type(subtopics) is not int or subtopics < 1:
            raise OptionError(f"subtopics is None or a whole number from 1, not {subtopics!r}")
        if text_dim is not None and not (type(text_dim) is int and 1 <= text_dim <= dim):
            raise OptionError(f"text_dim is None or a whole number from 1 to {dim}, not {text_dim!r}")
        return cls(subtopics, dim, dim if text_dim is None else text_dim)

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Columns of each part of a row."""
        sizes = {"state": len(Phase), "hint_level": 1, "visited": self.subtopics, "text": self.text_dim}
        ends = accumulate(sizes.values())
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def size(self) -> int:
        """Length of a row."""
        return len(Phase) + 1 + self.subtopics + self.text_dim

    def box(self) -> spaces.Box:
        """Return the space of a row."""
        low, high = np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        reach = np.float32(max(1.0, np.sqrt(self.dim / self.text_dim)))
        low[self.parts["text"]], high[self.parts["text"]] = -reach, reach
        return spaces.Box(low, high, dtype=np.float32)

    def dict(self) -> spaces.Dict:
        """Return the space of a row that is split into its parts."""
        box = self.box()
        return spaces.Dict({name: spaces.Box(box.low[at], box.high[at]) for name, at in self.parts.items()})

    def text(self, vectors: Vectors) -> Vectors:
        """Project embeddings, shape ``(…, dim)``, to the text part, shape ``(…, text_dim)``."""
        if self.text_dim == self.dim:
            return vectors
        from scipy.fft import dct

        kept = dct(vectors, norm="ortho", axis=-1)[..., : self.text_dim]
        return np.asarray(kept * np.sqrt(self.dim / self.text_dim), np.float32)

    def row(self, phase: Phase, hint_level: int, text: Vectors) -> FeatureRow:
        """Return a row without visited subtopics; ``text`` is an embedding, shape ``(dim,)``."""
        row = np.zeros(self.size, np.float32)
        row[phase] = 1
        row[self.parts["hint_level"]] = hint_level / HINT_LEVELS
        row[self.parts["text"]] = self.text(text)
        return row


def observation_vectors(observations: ObservationRenderer, vectors: TreeVectors) -> dict[str, FeatureRow]:
    """Return the embeddings of all observation texts of a tree, by text.

    They are cached on disk, except for the opening text: it names the turn limit, so it is embedded alone and the
    others are shared by all limits.
    """
    opening, *others = (observations.render_key(key) for key in observation_keys(vectors.tree))
    texts = tuple(dict.fromkeys(others))
    found = dict(zip(texts, vectors.stored(texts), strict=True))
    return {opening: vectors.of(opening), **found}
