"""Disclosure of a paper by a chat model, in the waves of ProjectionBench (arXiv:2605.30284).

A wave is one request. The first writes title, topic and procedure, the second the hypothesis, the third null
hypothesis, question and outcome, and the last splits the outcome into claims with contraries. Each wave sees the paper
and what the earlier waves wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from inquitree_gym.authoring.asking import Asker, fence
from inquitree_gym.authoring.sources import UNKNOWN, PaperText
from inquitree_gym.errors import AuthoringError
from inquitree_gym.llm import Chat, Completion, run_sync
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.disclosure import Disclosure, OutcomeClaim, ProjectionTask
from inquitree_gym.trees.fields import CANARY, FrozenModel, Paper, Provenance, Source, Support, Text

WAVES = ("disclose_material", "disclose_hypothesis", "disclose_outcome", "disclose_claims")
"""Templates of the requests."""
TEMPLATES = ("disclose_system", "disclose_correction", *WAVES)
"""Templates of the messages."""
_EVIDENCE = "outcome"
"""Id of the only piece of evidence: the paper's own statement of its outcome."""
REPAIRS = 1
"""Corrections that are asked for after a reply that cannot be read."""


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


async def disclose_paper(
    paper: PaperText,
    chat: Chat,
    *,
    task_id: str,
    domain: str = "papers",
    seed: int | None = None,
    keep: Callable[[Completion], object] = lambda completion: None,
) -> ProjectionTask:
    """Return the projection task of a paper, written by a model. Check it with `lint_task` and read it before use.

    Args:
        paper: the paper. Its text is untrusted and stands between fences.
        chat: the model.
        task_id: id of the task.
        domain: group of papers in reports.
        seed: sent with every request. None sends none.
        keep: called with every reply.

    Raises:
        AuthoringError: the text reports no experiment, or a reply cannot be read even after a correction.
        ServiceError: the model's service gives no usable answer.
        BudgetError: a cap is reached.
    """
    asker = Asker(chat, Prompts(names=TEMPLATES), paper.address, repairs=REPAIRS, seed=seed, keep=keep)
    read: dict[str, Any] = {"paper": paper.text, "fence": fence(paper.text)}
    material = await asker.ask("disclose_material", _Material, read)
    if not material.experiment:
        raise AuthoringError(
            f"'{paper.address}' reports no experiment, so there is no outcome to project; give a paper with a study of "
            "its own, not a review or a comment"
        )
    hypothesis = await asker.ask("disclose_hypothesis", _Hypothesis, read | _told(material))
    outcome = await asker.ask("disclose_outcome", _Outcome, read | _told(material, hypothesis))
    claims = await asker.ask("disclose_claims", _Claims, read | _told(outcome))
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
