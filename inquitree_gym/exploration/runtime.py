"""Runtime of a task under one set of rules: the provider, the texts of observations, and the info of turns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from inquitree_gym.envs.asking import AskedJudge
from inquitree_gym.envs.episode_records import RecordedStep, ServiceReply
from inquitree_gym.envs.text import Runtimes, Scope, TextEnv, TextRecords, not_started_error
from inquitree_gym.exploration.actions import FORMS
from inquitree_gym.exploration.events import ExplorationEvent, ExplorationSetup
from inquitree_gym.exploration.graders import Grade
from inquitree_gym.exploration.judging import VERSION
from inquitree_gym.exploration.library import LibrarySpec, Place
from inquitree_gym.exploration.providers import Listing, Provider, local_library
from inquitree_gym.exploration.rules import ALLOWED, ExplorationState, ToolView
from inquitree_gym.exploration.schema import ExplorationTask, WebSpec
from inquitree_gym.exploration.settings import ExplorationRules
from inquitree_gym.judging.judgement import LOCAL
from inquitree_gym.log import Turn
from inquitree_gym.log.records import JUDGE_ROLE
from inquitree_gym.prompts import Prompts

PACKAGE = "inquitree_gym.exploration"
TEMPLATE_NAMES = ("exploration", "exploration_limit", "exploration_end")
LOCAL_CONFIG = {"name": LOCAL, "version": VERSION}


def exploration_prompts(chosen: str | os.PathLike[str] | None = None) -> Prompts:
    """Return the templates of observations: ``"default"``, or overridden by a folder. See `Prompts`."""
    return Prompts(chosen, TEMPLATE_NAMES, PACKAGE)


class ExplorationTransition(NamedTuple):
    """One turn. Privileged."""

    state: ExplorationState
    """State after the turn."""
    view: ToolView | None = None
    """Outcome of the action. None after a reset."""
    action: str = ""
    grade: Grade | None = None
    """Grade of the answer, after the last turn."""
    shown: frozenset[Place] = frozenset()
    """All pages shown so far."""


@dataclass(frozen=True, slots=True, eq=False)
class ExplorationRuntime:
    """Everything that an environment needs to play one task under one set of rules."""

    task: ExplorationTask
    rules: ExplorationRules
    provider: Provider
    prompts: Prompts

    def render(self, state: ExplorationState, view: ToolView | None) -> str:
        """Return the observation after a turn, or after the reset."""
        if state.phase == "end":
            return self.prompts.render("exploration_end")
        values: dict[str, object] = {"question": self.task.question, "max_turns": self.rules.max_turns}
        forms = tuple(FORMS[tool] for tool in ALLOWED[self.rules.tools])
        values["invented"] = type(self.task.library) is LibrarySpec
        values["result"] = "" if view is None else view_text(view, forms)
        if state.phase == "answer":
            return self.prompts.render("exploration_limit", **values)
        return self.prompts.render("exploration", forms=forms, turn=state.turn + 1, **values)


def view_text(view: ToolView, forms: tuple[str, ...]) -> str:
    """Return the outcome of an action as text."""
    if view.fault:
        known = "\n".join(("The actions are:", *forms)) if view.tool == "invalid" else ""
        return f"Not possible: {view.fault}\n{known}".strip()
    if view.document is not None:
        head = f"{view.document.id} · {view.document.title} · page {view.page} of {len(view.document.pages)}"
        return f"{head}\n\n{view.document.pages[view.page - 1]}"
    if view.listing is not None:
        return _listing_text(view.listing)
    if view.tool == "search":
        hits = [
            f"{n}. {hit.id} · {hit.title} · page {hit.page}\n   {hit.snippet}" for n, hit in enumerate(view.hits, 1)
        ]
        return "\n".join(hits) or "Nothing was found."
    lines = [f"page {page}: {passage}" for page, passage in view.passages]
    return "\n".join([f"{view.total} lines found.", *lines])


def _listing_text(listing: Listing) -> str:
    """Return the records of a LOOKUP, or the fields of the database."""
    if listing.fields:
        return "\n".join([f"{listing.total} records, with the fields:", *listing.fields])
    more = f", the first {len(listing.records)}:" if listing.total > len(listing.records) else "."
    return "\n".join([f"{listing.total} records found{more}", *(f"{key} · {name}" for key, name in listing.records)])


class ExplorationRuntimes(Runtimes[ExplorationTask, ExplorationRules, ExplorationRuntime]):
    """Runtimes by task and rules, for one provider, or the library of each task. Built on first use."""

    most = 256

    def __init__(
        self, provider: Provider | None, prompts: Prompts, libraries: Callable[[LibrarySpec], Provider] | None = None
    ) -> None:
        """Create an empty cache. Without a provider each task is played in its own library.

        ``libraries`` returns the library of a task that is played once. None for `local_library`.
        """
        super().__init__()
        self._provider, self._prompts, self._libraries = provider, prompts, libraries

    @property
    def scope(self) -> Scope:
        """See `Runtimes.scope`. No text is embedded here."""
        return "shared" if self._libraries is None else "episode"

    def within(self, scope: Scope) -> ExplorationRuntimes:
        """Return an empty cache."""
        return ExplorationRuntimes(self._provider, self._prompts, self._libraries)

    def _build(self, about: ExplorationTask, rules: ExplorationRules) -> ExplorationRuntime:
        provider = self._provider or self._library(about.library)
        own = rules if rules.max_turns is not None else rules.override({"max_turns": about.turns})
        return ExplorationRuntime(about, own, provider, self._prompts)

    def _library(self, spec: LibrarySpec | WebSpec) -> Provider:
        if self._libraries is None or isinstance(spec, WebSpec):
            return local_library(spec)
        return self._libraries(spec)


class ExplorationRecords(TextRecords[ExplorationTask, ExplorationRules, ExplorationRuntime, ExplorationTransition]):
    """Records of the episode of one exploration."""

    def __init__(
        self,
        env: TextEnv[ExplorationTask, ExplorationRules, ExplorationRuntime, ExplorationTransition],
        judge: AskedJudge[ExplorationTask] | None,
    ) -> None:
        """Describe the episodes of ``env``. None for the local judge."""
        super().__init__(env)
        self._judge = judge

    def observation(self) -> str:
        """Render the text after the last turn."""
        return self._env.runtime.render(self._env.last.state, self._env.last.view)

    def last_step(self) -> RecordedStep:
        """Record the last action. Raise `ResetNeeded` before the first step."""
        last = self._env.last
        view = last.view
        if view is None:
            raise not_started_error()
        records = view.listing.records if view.listing is not None else ()
        event = ExplorationEvent(
            kind=view.tool,
            state=last.state.phase,
            fault=view.fault,
            shown=view.shown,
            listed=(*(hit.id for hit in view.hits), *(key for key, _ in records)),
            total=view.listing.total if view.listing is not None else view.total,
            answer=view.answer,
            grade=last.grade,
        )
        return RecordedStep(last.action, event)

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the judge's replies about the answer."""
        if self._judge is not None and self._judge.judgement is not None:
            for asked in self._judge.judgement.replies:
                yield ServiceReply(JUDGE_ROLE, asked.reply, asked.fault)

    def judge(self) -> Mapping[str, Any]:
        """Return name, version and settings of the judge."""
        return LOCAL_CONFIG if self._judge is None else self._judge.config

    def recall(self, turn: Turn[ExplorationEvent]) -> None:
        """Take the judge's grade from a logged turn."""
        if self._judge is not None and turn.event.answer is not None:
            self._judge.recall(turn.event.grade)

    def _setup(self) -> ExplorationSetup:
        provider = self._env.runtime.provider
        return ExplorationSetup(
            judge=json.loads(json.dumps(dict(self.judge()))),
            provider={"name": provider.name, "digest": provider.digest},
            repeatable=provider.digest is not None,
        )
