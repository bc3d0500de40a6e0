"""Observations, rendered as text and laid out as rows of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Engine, Event, ObservationKind, Phase, Rules, State
from inquitree_gym.inquiry.engine import rows as column
from inquitree_gym.inquiry.engine.rows import MOST_POLES, MOST_TALLIED
from inquitree_gym.sheets import lettered
from inquitree_gym.text_limits import MAX_OBSERVATION
from inquitree_gym.trees import HINT_LEVELS, Tree

if TYPE_CHECKING:
    from inquitree_gym.embeddings import TreeVectors
    from inquitree_gym.embeddings.protocol import Vectors
    from inquitree_gym.prompts import Prompts
    from inquitree_gym.trees.document import Study, Subtopic

FeatureRow = NDArray[np.float32]

_TEMPLATES = {
    ObservationKind.START: "start",
    ObservationKind.TOPIC: "topic",
    ObservationKind.SUBTOPIC: "subtopic",
    ObservationKind.REDO: "redo",
    ObservationKind.RESULT: "result",
    ObservationKind.SUBTOPIC_HINT: "subtopic_hint",
    ObservationKind.STUDY_HINT: "study_hint",
    ObservationKind.ASK_AGAIN: "ask_again",
    ObservationKind.CONCLUSION: "conclusion",
    ObservationKind.END: "end",
    ObservationKind.DECLINED: "declined",
    ObservationKind.WAIT: "wait",
    ObservationKind.RECALL: "recall",
    ObservationKind.EXAM: "exam",
    ObservationKind.EXAM_AGAIN: "exam",
}
_TELLS_NOTHING_LEFT = (
    ObservationKind.TOPIC, ObservationKind.RESULT, ObservationKind.DECLINED, ObservationKind.RECALL,
)  # fmt: skip
"""Observations that say when every subtopic has been visited."""
_ABOUT_SUBTOPICS = (ObservationKind.SUBTOPIC, ObservationKind.SUBTOPIC_HINT)

_DECISIONS: dict[str, dict[str, object]] = {
    "phrases": {"redo": "redo the study", "explore": "explore new subtopic", "conclude": "draw conclusion"},
    "tokens": {"redo": "redo_study", "explore": "explore_new_subtopic", "conclude": "draw_conclusion"},
}
"""Words that the texts ask for, by the rule ``decisions``."""


class ObservationKey(NamedTuple):
    """Everything that the text of an observation depends on."""

    kind: ObservationKind
    node: int = -1
    hint_level: int = 0
    outcome: int = 0
    """Place of a result among the outcomes of its study."""
    limit: bool = False
    nothing_left: int = 0
    """1 if every subtopic has been visited, 2 if every study has been run, too. A result tells only the former."""
    wording: int = 0
    """Wording of a result, under ``replication="varied"``."""
    again: bool = False
    """True for a subtopic that was visited, or a study that was run, before. Under ``reruns="redo"``."""

    def plain(self) -> ObservationKey:
        """Return the canonical key: keys of the same text become equal."""
        kind = self.kind
        if self.limit and kind != ObservationKind.RESULT:
            return LIMIT
        key = self
        if kind not in _TELLS_NOTHING_LEFT or self.limit:
            key = key._replace(nothing_left=0)
        elif kind == ObservationKind.RESULT:
            key = key._replace(nothing_left=min(key.nothing_left, 1))
        return key._replace(node=-1) if kind in (ObservationKind.ASK_AGAIN, ObservationKind.DECLINED) else key


LIMIT = ObservationKey(ObservationKind.TOPIC, limit=True)
"""Key of the limit prompt, shown in every phase but RESULT."""


class ObservationRenderer:
    """Renderer of the observation texts of one tree. Each text is rendered once."""

    def __init__(self, tree: Tree, prompts: Prompts, engine: Engine) -> None:
        self._tree = tree
        self._prompts = prompts
        self._turn_limit = engine.turn_limit
        self._told = {**_DECISIONS[engine.rules.decisions], "bare_decisions": engine.rules.bare_decisions}
        exam = engine.rules.exam != "none"
        briefing = {"wrong": engine.rules.fake_level, "exam": exam}
        self._told["briefing"] = briefing if engine.rules.briefing else None
        self._engine = engine
        self._recalls = engine.rules.reruns == "redo"
        self._reasons = engine.rules.feedback == "reason"
        self._rendered: dict[tuple[int, ...], str] = {}

    @cached_property
    def keys(self) -> tuple[ObservationKey, ...]:
        """The keys of all texts, by number. See `observation_keys`."""
        return tuple(observation_keys(self._tree, self._engine.rules))

    def render(self, event: Event) -> str:
        """Return the text of ``event``.

        Raises:
            OptionError: a template produces more than `MAX_OBSERVATION` characters.
        """
        row = event.state.row
        if self._engine.rules.exam == "sheet" and row[column.PHASE] == Phase.EXAM:
            return self._exam(event)
        key = (
            row[column.KIND], row[column.NODE], row[column.SHOWN_HINT], row[column.OUTCOME], row[column.LIMITED],
            0 if row[column.LEFT] else 1 + (row[column.UNRUN] == 0), row[column.WORDING],
            self._recalls and row[column.AGAIN],
        )  # fmt: skip
        text = self._rendered.get(key)
        if text is None:
            kind, node, hint_level, outcome, limit, nothing_left, wording, again = key
            shown = ObservationKey(
                ObservationKind(kind), node, hint_level, outcome, bool(limit), nothing_left, wording, bool(again)
            )
            text = self._rendered[key] = self.render_key(shown)
        return text

    def _exam(self, event: Event) -> str:
        """Return the whole exam, with the options in the order of this episode."""
        layout = self._engine.layout(event.state)
        items = [
            lettered((item.options[option] for option in order), number)
            for number, (item, order) in enumerate(zip(self._tree.conclusions, layout, strict=True), 1)
        ]
        again = event.kind == ObservationKind.EXAM_AGAIN
        text = self._prompts.render("exam", items=items, item=None, count=len(items), again=again)
        return self._checked("exam", text)

    def render_key(self, key: ObservationKey) -> str:
        """Return the text of ``key``, uncached. See `render` for the errors."""
        key = key.plain()
        name = _TEMPLATES[key.kind]
        parts = [] if key == LIMIT else [self._prompts.render(name, **self._values(key))]
        if key.limit:
            parts.append(self._prompts.render("limit"))
        return self._checked(name, "\n\n".join(parts))

    def _checked(self, name: str, text: str) -> str:
        if len(text) > MAX_OBSERVATION:
            raise OptionError(f"template '{name}.md' makes {len(text):,} characters; at most {MAX_OBSERVATION:,} fit")
        return text

    def _values(self, key: ObservationKey) -> dict[str, object]:
        left = {"nothing_left": key.nothing_left > 0, "all_run": key.nothing_left > 1}
        told = {"limit": key.limit, **left, "turns": self._turn_limit}
        return {**self._told, **told, **self._node_values(key)}

    def _node_values(self, key: ObservationKey) -> dict[str, object]:
        tree, kind = self._tree, key.kind
        nodes: Sequence[Subtopic | Study] = tree.subtopics if kind in _ABOUT_SUBTOPICS else tree.studies
        match kind:
            case ObservationKind.EXAM | ObservationKind.EXAM_AGAIN:
                items, count = [lettered(tree.conclusions[key.node].options)], len(tree.conclusions)
                again = kind == ObservationKind.EXAM_AGAIN
                return {"items": items, "item": key.node, "count": count, "again": again}
            case ObservationKind.START | ObservationKind.TOPIC | ObservationKind.DECLINED:
                return {"topic": tree.topic}
            case ObservationKind.SUBTOPIC:
                return {"subtopic": nodes[key.node].text, "again": key.again}
            case ObservationKind.REDO | ObservationKind.RECALL:
                return {"study": nodes[key.node].text}
            case ObservationKind.RESULT:
                study = tree.studies[key.node]
                result = study.outcomes[key.outcome][key.wording]
                return {"study": study.text, "result": result, "again": key.again}
            case ObservationKind.SUBTOPIC_HINT | ObservationKind.STUDY_HINT:
                hint = nodes[key.node].hints[key.hint_level - 1]
                return {"hint": hint, "level": key.hint_level, "levels": HINT_LEVELS, "reasons": self._reasons}
        return {}


def observation_keys(tree: Tree, rules: Rules) -> Iterator[ObservationKey]:
    """Yield the canonical keys of all texts of ``tree`` under ``rules``, the opening first.

    The texts that only some rules have come last.
    """
    yield from map(
        ObservationKey,
        (
            ObservationKind.START,
            ObservationKind.TOPIC,
            ObservationKind.ASK_AGAIN,
            ObservationKind.CONCLUSION,
            ObservationKind.END,
        ),
    )
    yield LIMIT
    yield ObservationKey(ObservationKind.DECLINED)
    for kind, left in product((ObservationKind.TOPIC, ObservationKind.DECLINED), (1, 2)):
        yield ObservationKey(kind, nothing_left=left)
    for node, _ in enumerate(tree.subtopics):
        yield ObservationKey(ObservationKind.SUBTOPIC, node)
        yield from (ObservationKey(ObservationKind.SUBTOPIC_HINT, node, level) for level in range(1, HINT_LEVELS + 1))
    for node, study in enumerate(tree.studies):
        yield from (ObservationKey(ObservationKind.STUDY_HINT, node, level) for level in range(1, HINT_LEVELS + 1))
        for outcome in range(len(study.outcomes)):
            yield from _result_keys(ObservationKey(ObservationKind.RESULT, node, 0, outcome))
    yield from _keys_of_rules(tree, rules)


def _keys_of_rules(tree: Tree, rules: Rules) -> Iterator[ObservationKey]:
    """Yield the canonical keys of the texts that only some rules have."""
    if rules.feedback == "reason":
        yield from (ObservationKey(ObservationKind.WAIT, hint_level=level) for level in range(HINT_LEVELS + 1))
    if rules.replication == "varied":
        for node, study in enumerate(tree.studies):
            for wording, outcome in product(range(1, len(study.outcomes[0])), range(len(study.outcomes))):
                yield from _result_keys(ObservationKey(ObservationKind.RESULT, node, 0, outcome, wording=wording))
    if rules.reruns == "redo":
        yield from _keys_of_reruns(tree, rules)
    if rules.exam == "items":
        yield from (ObservationKey(ObservationKind.EXAM, item) for item, _ in enumerate(tree.conclusions))
    if rules.redo_turn:
        yield from (ObservationKey(ObservationKind.REDO, node) for node, _ in enumerate(tree.studies))


def _keys_of_reruns(tree: Tree, rules: Rules) -> Iterator[ObservationKey]:
    """Yield the canonical keys of what was visited or run before."""
    for node, _ in enumerate(tree.subtopics):
        yield ObservationKey(ObservationKind.SUBTOPIC, node, again=True)
    for node, study in enumerate(tree.studies):
        for nothing_left in range(3):
            yield ObservationKey(ObservationKind.RECALL, node, nothing_left=nothing_left)
        wordings = len(study.outcomes[0]) if rules.replication == "varied" else 1
        for wording, outcome in product(range(wordings), range(len(study.outcomes))):
            key = ObservationKey(ObservationKind.RESULT, node, 0, outcome, wording=wording, again=True)
            yield from _result_keys(key)


def _result_keys(key: ObservationKey) -> Iterator[ObservationKey]:
    """Yield the keys of one result: before the turn limit, at it, and with nothing left to visit."""
    yield from (key, key._replace(limit=True), key._replace(nothing_left=1))


@dataclass(frozen=True)
class FeatureLayout:
    """Layout of a feature row: phase (one-hot), hint level (of H), visited subtopics (0 or 1), tally, text embedding.

    The tally has three numbers for each axis of the exam, how many results stated each of its poles, 0 to 127.

    The text embedding has unit length. With ``text_dim`` below ``dim`` it is the first coefficients of the orthonormal
    cosine transform (DCT-II) of the embedding, scaled to about unit length: a fixed projection that roughly keeps
    angles.
    """

    subtopics: int
    """Slots for visited subtopics."""
    axes: int
    """Slots for axes in the tally. 0 leaves it out."""
    dim: int
    """Length of the embedder's vectors."""
    text_dim: int
    """Length of the text part. At most ``dim``."""

    @classmethod
    def create(cls, subtopics: int, axes: int, dim: int, text_dim: int | None) -> FeatureLayout:
        """Return a layout. ``text_dim`` None keeps the whole embedding.

        Raises:
            OptionError: ``subtopics`` is no integer from 1, ``axes`` none from 0, or ``text_dim`` is neither None nor
                an integer from 1 to ``dim``.
        """
        if type(subtopics) is not int or subtopics < 1:
            raise OptionError(f"subtopics must be None or an integer from 1, got {subtopics!r}")
        if type(axes) is not int or axes < 0:
            raise OptionError(f"axes must be None or an integer from 1, got {axes!r}")
        if text_dim is not None and not (type(text_dim) is int and 1 <= text_dim <= dim):
            raise OptionError(f"text_dim must be None or an integer from 1 to {dim}, got {text_dim!r}")
        return cls(subtopics, axes, dim, dim if text_dim is None else text_dim)

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Columns of each part of a row."""
        tally = {"tally": MOST_POLES * self.axes} if self.axes else {}
        sizes = {"state": len(Phase), "hint_level": 1, "visited": self.subtopics, **tally, "text": self.text_dim}
        ends = accumulate(sizes.values())
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def size(self) -> int:
        """Length of a row."""
        return len(Phase) + 1 + self.subtopics + MOST_POLES * self.axes + self.text_dim

    def box(self) -> spaces.Box:
        """Return the space of a row."""
        low, high = np.zeros(self.size, np.float32), np.ones(self.size, np.float32)
        reach = np.float32(max(1.0, np.sqrt(self.dim / self.text_dim)))
        low[self.parts["text"]], high[self.parts["text"]] = -reach, reach
        if self.axes:
            high[self.parts["tally"]] = MOST_TALLIED
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

    def fill(self, row: FeatureRow, state: State) -> None:
        """Write what was visited and the tally into a row."""
        row[self.parts["visited"]] = [state.visited >> i & 1 for i in range(self.subtopics)]
        if self.axes:
            tally = self.parts["tally"]
            row[tally.start : tally.start + len(state.tally)] = state.tally

    def row(self, phase: Phase, hint_level: int, text: Vectors) -> FeatureRow:
        """Return a row without visited subtopics. ``text`` is an embedding, shape ``(dim,)``."""
        row = np.zeros(self.size, np.float32)
        row[phase] = 1
        row[self.parts["hint_level"]] = hint_level / HINT_LEVELS
        row[self.parts["text"]] = self.text(text)
        return row


def observation_vectors(observations: ObservationRenderer, vectors: TreeVectors, rules: Rules) -> dict[str, FeatureRow]:
    """Return the embeddings of all observation texts of a tree, by text.

    They are shipped or cached on disk. The opening text names the turn limit, so it is stored by itself and the others
    are shared by all limits. A tree that is played once has none here: its texts are embedded when they are shown.
    """
    if not vectors.lasting:
        return {}
    opening, *others = (observations.render_key(key) for key in observation_keys(vectors.tree, rules))
    texts = tuple(dict.fromkeys(others))
    return {opening: vectors.stored((opening,))[0], **dict(zip(texts, vectors.stored(texts), strict=True))}
