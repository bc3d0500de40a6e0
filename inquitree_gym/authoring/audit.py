"""Audit of a tree by a second chat model: its texts, its prerequisites, and what a reader can do with it.

A stage is a list of questions. A reply that cannot be read, or that contradicts itself, is corrected once. What is then
still without an answer keeps its reply and a status. It adds nothing to any figure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from inquitree_gym.authoring import asking
from inquitree_gym.authoring.findings import Asked, AuditFigure, Finding, Findings, Status
from inquitree_gym.errors import ServiceError, Severity
from inquitree_gym.judging.asking import Talk, UnscoredError, code_of, fence_of, secret_of
from inquitree_gym.llm import Chat, Message, Usage, estimated_tokens, strip_thinking
from inquitree_gym.llm.chat import all_results
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.document import Candidate, Subtopic
from inquitree_gym.trees.fields import FrozenModel, Text
from inquitree_gym.trees.schema import Tree

TEMPLATES = (
    "audit_system", "audit_fields", "audit_edges", "audit_recall", "audit_sound", "audit_fakes", "audit_correction",
)  # fmt: skip
"""Templates of the messages."""
AT_ONCE = 8
"""Requests at the same time."""
PROMPTS = Prompts(names=TEMPLATES)

M = TypeVar("M", bound=FrozenModel)
T = TypeVar("T")


class BadReplyError(Exception):
    """A reply that is no answer. The message is its fault."""

    def __init__(self, fault: str, status: Status = "unreadable") -> None:
        super().__init__(fault)
        self.status = status


class Answered(NamedTuple):
    """Content of a reply."""

    findings: Sequence[Finding] = ()
    counts: Mapping[str, tuple[int, int]] = {}
    """Count and n by the name of the figure."""


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """One request of an audit."""

    name: str
    prompt: str
    read: Callable[[str], Answered]
    """Return the content of a reply. Raises `BadReplyError`."""

    @property
    def messages(self) -> list[Message]:
        """The request."""
        return [{"role": "system", "content": PROMPTS.render("audit_system")}, {"role": "user", "content": self.prompt}]


class AuditResult(NamedTuple):
    """All that an audit found and paid."""

    findings: Findings
    """The record before, with the rows, figures and requests without an answer of this audit."""
    read: int
    """Requests whose reply was read."""
    usage: Usage


class _Remark(FrozenModel):
    text: str
    rule: Literal["leak", "interpretation", "implausible", "form", "overstated"]
    severity: Severity
    why: Text
    proposal: Text | None = None


class _Remarks(FrozenModel):
    clean: bool
    remarks: tuple[_Remark, ...]


class _Verdict(FrozenModel):
    edge: str
    verdict: Literal["needed", "superfluous", "circular"]
    why: Text


class _Missing(FrozenModel):
    later: str
    earlier: str
    because: Text


class _Edges(FrozenModel):
    edges: tuple[_Verdict, ...]
    missing: tuple[_Missing, ...]


async def ask_all(
    questions: Sequence[AuditQuestion], chat: Chat, before: Findings, *, seed: int = 0,
    progress: Callable[[str], object] = lambda name: None,
) -> AuditResult:  # fmt: skip
    """Ask a model all questions, `AT_ONCE` at a time, and return the record with what it found.

    Args:
        questions: the questions, from `text_questions`, `edge_questions` and `audit_exam.exam_questions`.
        chat: the model, within its budget and cache.
        before: record to add to. Figures and requests without an answer of this model are replaced.
        seed: sent with each request. Another one asks a caching chat anew.
        progress: called with the name of each question that has ended.

    Raises:
        CacheError: a paid reply could not be stored.
    """
    model, gate = str(chat.config["model"]), asyncio.Semaphore(AT_ONCE)

    async def ask(question: AuditQuestion) -> tuple[Answered, Asked | None, Usage]:
        async with gate:
            talk = Talk(chat)
            answered, status, why = await _answer(question, talk, seed)
            progress(question.name)
            reply = talk.replies[-1].reply.text[: asking.MAX_ECHO] if talk.replies else ""
            lost = Asked(name=question.name, status=status, why=why, reply=reply, model=model)
            return answered, None if status == "read" else lost, talk.usage

    results = await all_results(map(ask, questions))
    counts: dict[str, tuple[int, int]] = {}
    for answered, _, _ in results:
        for name, (count, n) in answered.counts.items():
            known = counts.get(name, (0, 0))
            counts[name] = known[0] + count, known[1] + n
    figures = [AuditFigure(name=name, count=count, n=n, model=model) for name, (count, n) in counts.items() if n]
    lost = [asked for _, asked, _ in results if asked]
    record = before.with_rows(finding for answered, _, _ in results for finding in answered.findings)
    kept = [figure for figure in before.figures if figure.model != model]
    unread = [asked for asked in before.unread if asked.model != model]
    record = record.model_copy(update={"figures": (*kept, *figures), "unread": (*unread, *lost)})
    return AuditResult(record, len(results) - len(lost), sum((usage for _, _, usage in results), Usage()))


async def _answer(question: AuditQuestion, talk: Talk, seed: int) -> tuple[Answered, Status, str]:
    messages = question.messages
    for is_last in (False, True):
        try:
            reply = await talk.ask(messages, seed)
        except UnscoredError as error:
            return Answered(), "not asked" if talk.usage.skipped else "failed", str(error)
        except ServiceError as error:
            return Answered(), "failed", str(error)
        if (end := talk.replies[-1].reply.end) in ("refused", "filtered"):
            return Answered(), "refused", f"the reply was {end}"
        try:
            return question.read(strip_thinking(reply)), "read", ""
        except BadReplyError as error:
            if is_last:
                return Answered(), error.status, str(error)
            correction = PROMPTS.render("audit_correction", fault=str(error))
            echo = {"role": "assistant", "content": reply[: asking.MAX_ECHO]}
            messages += [echo, {"role": "user", "content": correction}]
    raise AssertionError("the loop returns")


def prompt_tokens(questions: Sequence[AuditQuestion]) -> int:
    """Return the estimated tokens of all requests, corrections left out."""
    return sum(estimated_tokens(message) for question in questions for message in question.messages)


def text_questions(tree: Tree) -> Iterator[AuditQuestion]:
    """Yield a question about the texts of each subtopic with its studies, and one about topic and conclusions."""
    for subtopic in tree.subtopics:
        yield _text_question(f"texts of {subtopic.id}", list(_subtopic_texts(subtopic)), _topic_line(tree))
    wanted = {name for item in tree.conclusions for group in item.needs for name in group}
    results = [
        f"result of {study.id}{f' at {key}' if key else ''}: {texts[0]}"
        for study in tree.studies if study.id in wanted for key, texts in study.result.texts.items()
    ]  # fmt: skip
    texts = [("topic", "topic", tree.topic)]
    for item in tree.conclusions:
        needs = " and ".join(" or ".join(group) for group in item.needs)
        texts += [(item.id, f"conclusion {item.id} at {key} (needs {needs})", text) for key, text in item.texts.items()]
    yield _text_question("topic and conclusions", texts, "\n".join([_axes_lines(tree), *results]))


def _topic_line(tree: Tree) -> str:
    return f"Topic: {tree.topic}\n{_axes_lines(tree)}"


def _axes_lines(tree: Tree) -> str:
    return "\n".join(f"axis {axis.id}: {axis.question} Poles: {' / '.join(axis.poles)}" for axis in tree.axes)


def _subtopic_texts(subtopic: Subtopic) -> Iterator[tuple[str, str, str]]:
    """Yield node, description and text of everything that a subtopic holds."""
    yield from _shared_texts(subtopic, "question", subtopic.hints)
    for study in subtopic.studies:
        yield from _shared_texts(study, "protocol", study.hints)
        for key, wordings in study.result.texts.items():
            for i, text in enumerate(wordings, 1):
                yield study.id, f"result of {study.id}{f' at {key}' if key else ''}, wording {i}", text


def _shared_texts(node: Candidate, noun: str, hints: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    yield node.id, f"{noun} {node.id}", node.text
    for i, text in enumerate(node.paraphrases, 1):
        yield node.id, f"paraphrase {i} of {node.id}", text
    for i, text in enumerate(hints, 1):
        yield node.id, f"hint {i} of {node.id}", text


def _text_question(name: str, texts: Sequence[tuple[str, str, str]], about: str) -> AuditQuestion:
    secret = secret_of(name, about, *texts)
    coded = {code_of("T", i, secret): text for i, text in enumerate(texts, 1)}
    material = "\n".join([about, *(f"{code} {what}: {text}" for code, (_, what, text) in coded.items())])
    prompt = PROMPTS.render("audit_fields", fence=fence_of(secret), material=material, example=next(iter(coded)))

    def read(reply: str) -> Answered:
        said = parsed(reply, _Remarks)
        if said.clean == bool(said.remarks):
            raise BadReplyError(f'"clean" is {said.clean} beside {len(said.remarks)} remarks', "contradictory")
        found = []
        for remark in said.remarks:
            node, _, text = known(coded, remark.text)
            proposal = None if remark.proposal == text else remark.proposal
            found.append(
                Finding(
                    node=node, text=text, rule=remark.rule, severity=remark.severity, proposal=proposal, why=remark.why
                )
            )
        return Answered(found)

    return AuditQuestion(name, prompt, read)


def edge_questions(tree: Tree) -> Iterator[AuditQuestion]:
    """Yield the question about all prerequisites. None for a single subtopic."""
    if len(tree.subtopics) < 2:
        return
    edges = [(subtopic.id, each.id, each.because) for subtopic in tree.subtopics for each in subtopic.prerequisites]
    lines = [f"{each.id} · {each.name}: {each.text}" for each in tree.subtopics]
    lines += [f"study {study.id} of {each.id}: {study.text}" for each in tree.subtopics for study in each.studies]
    secret = secret_of(*lines, *edges)
    coded = {code_of("E", i, secret): edge for i, edge in enumerate(edges, 1)}
    lines += [f"{code} {later} needs {earlier}: {because}" for code, (later, earlier, because) in coded.items()]
    prompt = PROMPTS.render("audit_edges", fence=fence_of(secret), material="\n".join(lines))
    yield AuditQuestion("prerequisites", prompt, lambda reply: _read_edges(reply, coded, tree))


def _read_edges(reply: str, coded: Mapping[str, tuple[str, str, str]], tree: Tree) -> Answered:
    said = parsed(reply, _Edges)
    verdicts: dict[str, _Verdict] = {}
    for verdict in said.edges:
        known(coded, verdict.edge)
        if verdicts.setdefault(verdict.edge, verdict).verdict != verdict.verdict:
            raise BadReplyError(f"{verdict.edge} has two verdicts", "contradictory")
    if lacking := [code for code in coded if code not in verdicts]:
        raise BadReplyError(f"{', '.join(lacking)} has no verdict")
    found = [
        Finding(node=coded[code][0], text=coded[code][1], rule=f"{each.verdict}-edge",
                severity="error" if each.verdict == "circular" else "warning", proposal="", why=each.why)
        for code, each in verdicts.items() if each.verdict != "needed"
    ]  # fmt: skip
    pairs = {(later, earlier) for later, earlier, _ in coded.values()}
    for each in said.missing:
        for name in (each.later, each.earlier):
            if name not in tree.graph:
                raise BadReplyError(f"'{name:.60}' is no subtopic of the tree")
        if each.later == each.earlier or pairs & {(each.later, each.earlier), (each.earlier, each.later)}:
            raise BadReplyError(f"{each.later} and {each.earlier} are joined already", "contradictory")
        pairs.add((each.later, each.earlier))
        found.append(
            Finding(node=each.later, text=each.earlier, rule="missing-edge", severity="warning", proposal=each.because)
        )
    return Answered(found)


def parsed(reply: str, model: type[M]) -> M:
    """Return the JSON object in a reply. Raise `BadReplyError` if it has another form."""
    found, faults = asking.read(reply, model)
    if found is None:
        raise BadReplyError("; ".join(faults))
    return found


def known(coded: Mapping[str, T], code: str) -> T:
    """Return what a code of a request stands for. Raise `BadReplyError` if it stands for nothing."""
    if code.strip() not in coded:
        raise BadReplyError(f"'{code:.60}' is no code of the request")
    return coded[code.strip()]
