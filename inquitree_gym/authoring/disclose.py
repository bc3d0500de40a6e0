"""Disclosure of a paper by a chat model, in the waves of ProjectionBench (arXiv:2605.30284).

A wave is one request. The first writes title, topic and procedure, the second the hypothesis, the third null
hypothesis, question and outcome, and the last splits the outcome into claims with contraries. Each wave sees the paper
and what the earlier waves wrote.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from inquitree_gym.authoring.sources import UNKNOWN, PaperText
from inquitree_gym.errors import AuthoringError
from inquitree_gym.llm import Chat, Message, run_sync, strip_thinking
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.disclosure import Disclosure, OutcomeClaim, ProjectionTask
from inquitree_gym.trees.fields import CANARY, FrozenModel, Paper, Provenance, Source, Support, Text
from inquitree_gym.trees.validation import validation_faults

TEMPLATES = (
    "disclose_system", "disclose_material", "disclose_hypothesis", "disclose_outcome", "disclose_claims",
    "disclose_correction",
)  # fmt: skip
"""Templates of the messages."""
_EVIDENCE = "outcome"
"""Id of the only piece of evidence: the paper's own statement of its outcome."""
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)

Wave = TypeVar("Wave", bound=FrozenModel)


class _Material(FrozenModel):
    experiment: bool
    title: Text
    topic: Text
    procedure: Annotated[tuple[Text, ...], Field(min_length=1)]


class _Hypothesis(FrozenModel):
    hypothesis: Text


class _Outcome(FrozenModel):
    null_hypothesis: Text
    question: Text
    outcome: Text


class _Claim(FrozenModel):
    independent: Text
    relation: Text
    dependent: Text
    contraries: Annotated[tuple[Text, ...], Field(min_length=1)]


class _Claims(FrozenModel):
    claims: Annotated[tuple[_Claim, ...], Field(min_length=1)]


def disclose(paper: PaperText, chat: Chat, *, task_id: str, domain: str = "papers") -> ProjectionTask:
    """Return the projection task of a paper. Synchronous form of `disclose_paper`."""
    return run_sync(disclose_paper(paper, chat, task_id=task_id, domain=domain))


async def disclose_paper(paper: PaperText, chat: Chat, *, task_id: str, domain: str = "papers") -> ProjectionTask:
    """Return the projection task of a paper, written by a model. Check it with `lint_task` and read it before use.

    Args:
        paper: the paper. Its text is untrusted and stands between fences.
        chat: the model.
        task_id: id of the task.
        domain: group of papers in reports.

    Raises:
        AuthoringError: the text reports no experiment, or a reply cannot be read even after a correction.
        ServiceError: the model's service gives no usable answer.
        BudgetError: a cap is reached.
    """
    ask = _Waves(paper, chat)
    material = await ask.wave("disclose_material", _Material)
    if not material.experiment:
        raise AuthoringError(
            f"'{paper.address}' reports no experiment, so there is no outcome to project; give a paper with a study of "
            "its own, not a review or a comment"
        )
    hypothesis = await ask.wave("disclose_hypothesis", _Hypothesis, **_told(material))
    outcome = await ask.wave("disclose_outcome", _Outcome, **_told(material, hypothesis))
    claims = await ask.wave("disclose_claims", _Claims, **_told(outcome))
    disclosure = Disclosure(
        topic=material.topic,
        domain=domain,
        question=outcome.question,
        hypothesis=hypothesis.hypothesis,
        null_hypothesis=outcome.null_hypothesis,
        procedure=material.procedure,
        outcome=outcome.outcome,
        claims=tuple(
            OutcomeClaim(id=f"p{i}", evidence=(_EVIDENCE,), **_told(claim)) for i, claim in enumerate(claims.claims, 1)
        ),
    )
    return ProjectionTask(
        format="projection/1",
        id=task_id,
        version=1,
        canary=CANARY,
        paper=_titled(paper.paper, material.title),
        disclosure=disclosure,
        provenance=_provenance(paper, str(chat.config["model"])),
    )


class _Waves:
    """Requests about one paper. After a reply that cannot be read, the model is asked once for a correction."""

    def __init__(self, paper: PaperText, chat: Chat) -> None:
        self._paper, self._chat = paper, chat
        self._prompts = Prompts(names=TEMPLATES)
        self._fence = f"=== {hashlib.sha256(paper.text.encode()).hexdigest()[:24]} ==="

    async def wave(self, template: str, model: type[Wave], **told: Any) -> Wave:
        """Return the reply to one wave as ``model``."""
        values = {"paper": self._paper.text, "fence": self._fence, **told}
        messages = [
            {"role": "system", "content": self._prompts.render("disclose_system")},
            {"role": "user", "content": self._prompts.render(template, **values)},
        ]
        reply = await self._ask(messages)
        if fault := reply_fault(reply, model):
            correction = self._prompts.render("disclose_correction", fault=fault)
            messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": correction}]
            reply = await self._ask(messages)
        if fault := reply_fault(reply, model):
            raise AuthoringError(
                f"the model '{self._chat.config['model']}' gave no usable answer to '{template}' about "
                f"'{self._paper.address}': {fault}; try again, or another model"
            )
        return model.model_validate_json(object_in(reply))

    async def _ask(self, messages: Sequence[Message]) -> str:
        return strip_thinking((await complete_with_text(self._chat, messages)).text)


def object_in(reply: str) -> str:
    """Return the JSON object in a reply, or the whole reply if it has none."""
    found = _OBJECT.search(reply)
    return found.group() if found else reply


def reply_fault(reply: str, model: type[FrozenModel]) -> str:
    """Return the fault of a reply, or an empty string for a valid one."""
    written = object_in(reply)
    try:
        document = json.loads(written)
    except ValueError as error:
        return f"it is no JSON object ({error})"
    try:
        model.model_validate_json(written)
    except ValidationError as error:
        return "; ".join(str(each) for each in validation_faults(error, document))
    return ""


def _told(*waves: FrozenModel) -> dict[str, Any]:
    return {name: getattr(wave, name) for wave in waves for name in type(wave).model_fields}


def _titled(paper: Paper, title: str) -> Paper:
    return paper.model_copy(update={"title": title}) if paper.title == UNKNOWN else paper


def _provenance(paper: PaperText, model: str) -> Provenance:
    return Provenance(
        sources=(Source(id="S1", address=paper.address, what=f"the paper, as read by {model}"),),
        support=(
            Support(
                node=_EVIDENCE,
                sources=("S1",),
                strength="unconfirmed",
                note=f"Written by {model} from the text; no one has checked it.",
            ),
        ),
    )
