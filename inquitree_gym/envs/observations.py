"""What the agent reads: events rendered to text, once each."""

from __future__ import annotations

from inquitree_gym.engine import Event, Kind
from inquitree_gym.errors import OptionError
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import HINT_LEVELS, Tree

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


class Observations:
    """The texts of one tree under one set of templates, rendered when first needed and then reused.

    A text depends only on the kind of event, its node, the hint level, the fake shown and whether the limit struck.
    """

    def __init__(self, tree: Tree, prompts: Prompts, turn_limit: int | None) -> None:
        """Bind a tree to templates; ``turn_limit`` is named in the opening text."""
        self._tree = tree
        self._prompts = prompts
        self._turn_limit = turn_limit
        self._rendered: dict[tuple[int, int, int, int, bool], str] = {}

    def of(self, event: Event) -> str:
        """Return the observation of ``event``.

        Raises:
            OptionError: a template makes a text longer than `MAX_OBSERVATION`.
        """
        key = (event.kind, event.node, event.hint_level, event.fake, event.limit)
        text = self._rendered.get(key)
        if text is None:
            text = self._rendered[key] = self._render(event)
        return text

    def _render(self, event: Event) -> str:
        name = _TEMPLATES[event.kind]
        parts = [] if event.limit and event.kind != Kind.RESULT else [self._prompts.render(name, **self._values(event))]
        if event.limit:
            parts.append(self._prompts.render("limit"))
        text = "\n\n".join(parts)
        if len(text) > MAX_OBSERVATION:
            raise OptionError(f"template '{name}.md' makes {len(text):,} characters; at most {MAX_OBSERVATION:,} fit")
        return text

    def _values(self, event: Event) -> dict[str, object]:
        tree, node = self._tree, event.node
        match event.kind:
            case Kind.START | Kind.TOPIC:
                return {"topic": tree.topic, "turns": self._turn_limit}
            case Kind.SUBTOPIC:
                return {"subtopic": tree.subtopics[node].text}
            case Kind.STUDY:
                return {"study": tree.studies[node].text}
            case Kind.RESULT:
                study = tree.studies[node]
                return {"study": study.text, "result": (study.result, *study.fakes)[event.fake], "limit": event.limit}
            case Kind.SUBTOPIC_HINT:
                return _hint(tree.subtopics[node].hints, event.hint_level)
            case Kind.STUDY_HINT:
                return _hint(tree.studies[node].hints, event.hint_level)
        return {}


def _hint(hints: tuple[str, ...], level: int) -> dict[str, object]:
    return {"hint": hints[level - 1], "level": level, "levels": HINT_LEVELS}
