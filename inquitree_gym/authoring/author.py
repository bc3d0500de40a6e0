"""A research tree written by a chat model from a paper, in passes.

Each pass is a request, or one for each subtopic, with a template of its own. A reply is checked as part of the tree by
the loader and by those rules of the linter that the pass decides, and sent back with its faults up to `REPAIRS` times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, NamedTuple

from pydantic import ValidationError

from inquitree_gym.authoring import drafts
from inquitree_gym.authoring.asking import Asker, ReplyReview, fence
from inquitree_gym.authoring.disclose import REPAIRS as DISCLOSURE_REPAIRS
from inquitree_gym.authoring.disclose import WAVES, disclose_paper
from inquitree_gym.authoring.drafts import Draft, tree_document
from inquitree_gym.authoring.extract import PaperDocument
from inquitree_gym.authoring.findings import Quotation
from inquitree_gym.authoring.sources import PaperText, publication_date
from inquitree_gym.errors import AuthoringError, Fault, OptionError, TreeError
from inquitree_gym.llm import Chat, Completion, Usage, estimated_tokens
from inquitree_gym.llm.chat import all_results
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import rules
from inquitree_gym.trees.fields import HINT_LEVELS, Paper, PublicationDate
from inquitree_gym.trees.lint import axes_wanted, lint_tree
from inquitree_gym.trees.load import parse_tree
from inquitree_gym.trees.schema import Embed, Tree

REPAIRS = 3
"""Times that a faulty reply is asked for again."""
PASSES = ("outline", "studies", "contraries", "conclusions", "edges", "ladders", "evidence")
TEMPLATES = tuple(f"author_{name}" for name in ("system", "correction", *PASSES))
"""Templates of the messages, besides those of `disclose_paper`."""
_RULES = {
    "outline": "T901 T913 T916",
    "studies": "T902 T903 T904 T906 T907 T908 T909 T910 T911 T912",
    "contraries": "T910 T911 T912 T913",
    "conclusions": "T911 T912 T913 T917 T918 T919",
    "edges": "T201",
    "ladders": "T501 T502 T503 T504 T921",
}
"""Rules of the linter that each pass decides."""
_BOUNDS: dict[str, Any] = {
    "readers": rules.MIN_READERS,
    "wordings": rules.MIN_WORDINGS,
    "spread": round(rules.MAX_LENGTH_SPREAD * 100),
    "examined": rules.MAX_EXAMINED[1],
    "quotation": drafts.MAX_QUOTATION,
}


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """Record of a paper, known besides its text. None is taken from the text, as the model reads it."""

    title: str | None = None
    authors: tuple[str, ...] | None = None
    journal: str | None = None
    published: PublicationDate | None = None
    doi: str | None = None
    licence: str | None = None


class AuthoredTree(NamedTuple):
    """A tree, what its results rest on, and what is left to mend."""

    tree: Tree
    quotations: Mapping[str, tuple[Quotation, ...]]
    """Quotation, place and fact behind each study. Not to be shared: the words are the paper's."""
    faults: tuple[Fault, ...]
    left_out: tuple[str, ...]
    """Parts that could not be written, each with the reason."""


class Author:
    """Passes over one paper."""

    def __init__(  # noqa: PLR0913  (one parameter per option)
        self,
        document: PaperDocument,
        chat: Chat,
        *,
        tree_id: str,
        subtopics: int,
        record: PaperRecord | None = None,
        seed: int = 0,
        embed: Embed | None = None,
        on_pass: Callable[[str], None] = lambda name: None,
        on_reply: Callable[[Completion], None] = lambda completion: None,
    ) -> None:
        """Prepare the passes.

        Args:
            document: the paper. Its text is untrusted and stands between fences.
            chat: the model.
            tree_id: id of the tree.
            subtopics: number of subtopics, from 1.
            record: what is known of the paper.
            seed: sent with every request. Another one gives other replies, also from a cache.
            embed: embedder for the rules of meaning. None leaves them out.
            on_pass: called with the name of each pass, or its part, when it is finished.
            on_reply: called with every reply.
        """
        self._document, self._chat, self._id, self._count = document, chat, tree_id, subtopics
        self._record, self._embed, self._seed = record or PaperRecord(), embed, seed
        self._on_pass, self._on_reply = on_pass, on_reply
        prompts = Prompts(names=TEMPLATES)
        self._asker = Asker(chat, prompts, document.file, repairs=REPAIRS, seed=seed, keep=on_reply)

    async def write(self) -> AuthoredTree:
        """Return the tree.

        Raises:
            AuthoringError: the text reports no study, states no date, or no reply to a pass can be used.
            ServiceError: the model's service gives no usable answer.
            BudgetError: a cap is reached.
        """
        draft = await self._outline()
        draft = await self._studies(draft)
        draft = replace(draft, contraries=_joined(await self._each_subtopic(draft, self._contraries)))
        draft = await self._conclusions(draft)
        draft = await self._edges(draft)
        draft = replace(draft, ladders=_joined(await self._each_subtopic(draft, self._ladders)))
        draft, left_out = await self._disclosure(draft)
        tree = Tree.model_validate_json(_json(drafts.with_drawn_poles(tree_document(draft))))
        return AuthoredTree(tree, drafts.quotations(draft), tuple(lint_tree(tree, self._embed)), tuple(left_out))

    async def _outline(self) -> Draft:
        def started(outline: drafts.PaperOutline) -> Draft:
            model = str(self._chat.config["model"])
            return Draft(self._document, self._paper(outline), self._id, model, outline)

        def check(outline: drafts.PaperOutline) -> ReplyReview:
            if not outline.experiment:
                return ReplyReview()
            try:
                draft = started(outline)
            except (OptionError, ValidationError) as error:
                return ReplyReview([f"published and doi: {error}; correct it, or leave it empty"])
            barring = []
            if len(outline.subtopics) != self._count:
                barring = [f"subtopics: there are {len(outline.subtopics)}, give exactly {self._count}"]
            return self._review(draft, "outline", barring=barring, nodes={"", *draft.axes})

        outline = await self._ask(
            "outline",
            drafts.PaperOutline,
            check,
            text=self._document.text,
            subtopics=self._count,
            axes=axes_wanted(self._count),
        )
        if not outline.experiment:
            raise AuthoringError(
                f"'{self._document.file}' reports no study of its own, says the model; give a paper with results, not "
                "a review or another text"
            )
        self._on_pass("outline")
        return started(outline)

    def _paper(self, outline: drafts.PaperOutline) -> Paper:
        """Return the record of the paper, as known or read. Raise `OptionError` for a date that is none."""
        known = self._record
        if known.published is None and not outline.published:
            raise AuthoringError(
                f"'{self._document.file}' states no date of publication that the model could find; give it with "
                "--published"
            )
        published = known.published or publication_date(outline.published)
        return Paper(
            title=known.title or outline.title,
            authors=known.authors or outline.authors,
            journal=known.journal or outline.journal,
            year=int(published.date[:4]),
            published=published,
            doi=_doi(outline.doi) if known.doi is None else known.doi,
            licence=known.licence or outline.licence,
        )

    async def _studies(self, draft: Draft) -> Draft:
        def check(reply: drafts.Studies) -> ReplyReview:
            known, named = draft.subtopics, {study.subtopic for study in reply.studies}
            barring = [f"'{each}' is no subtopic; take one of {', '.join(known)}" for each in named - known.keys()]
            if bare := [each for each in known if each not in named]:
                barring += [f"no study in {', '.join(bare)}; if the paper has too little, fewer --subtopics are needed"]
            missing = [study.quotation for study in reply.studies if self._document.place(study.quotation) is None]
            invented = [f"the quotation '{each}' is not in the paper; copy its words exactly" for each in missing]
            return self._review(replace(draft, studies=reply.studies), "studies", barring, invented)

        small, count = self._count <= rules.SMALL, studies_wanted(self._count)
        reply = await self._ask(
            "studies",
            drafts.Studies,
            check,
            text=f"{self._document.text}\n\n{drafts.shown(draft)}",
            studies=count,
            controls=rules.SMALL_CONTROLS if small else rules.MIN_CONTROLS,
            pairs=rules.SMALL_PAIRS if small else int(count * rules.MAX_PAIR_SHARE),
        )
        self._on_pass("studies")
        return replace(draft, studies=reply.studies)

    async def _contraries(self, draft: Draft, subtopic: str) -> Mapping[str, Any]:
        wanted = {
            name: draft.keys(study.axes)[1:]
            for name, study in draft.named_studies.items()
            if study.subtopic == subtopic and study.axes
        }
        if not wanted:
            return {}

        def check(reply: drafts.Contraries) -> ReplyReview:
            changed = replace(draft, contraries={**reply.results})
            return self._review(changed, "contraries", _unlike(reply.results, wanted), nodes=wanted.keys())

        material = f"{self._document.text}\n\n{drafts.shown(draft)}"
        reply: drafts.Contraries = await self._ask("contraries", drafts.Contraries, check, text=material, wanted=wanted)
        return reply.results

    async def _conclusions(self, draft: Draft) -> Draft:
        def check(reply: drafts.Items) -> ReplyReview:
            names = {f"c{i}" for i in range(1, len(reply.conclusions) + 1)}
            return self._review(replace(draft, items=reply.conclusions), "conclusions", nodes={*names, *draft.axes})

        reply = await self._ask("conclusions", drafts.Items, check, text=drafts.shown(draft))
        self._on_pass("conclusions")
        return replace(draft, items=reply.conclusions)

    async def _edges(self, draft: Draft) -> Draft:
        def check(reply: drafts.Edges) -> ReplyReview:
            known = draft.subtopics
            barring = [f"'{e.subtopic}' is no subtopic" for e in reply.edges if e.subtopic not in known]
            return self._review(replace(draft, edges=reply.edges), "edges", barring)

        reply = await self._ask("edges", drafts.Edges, check, text=drafts.shown(draft))
        self._on_pass("edges")
        return replace(draft, edges=reply.edges)

    async def _ladders(self, draft: Draft, subtopic: str) -> Mapping[str, Any]:
        own = [name for name, study in draft.named_studies.items() if study.subtopic == subtopic]
        wanted = dict.fromkeys([subtopic, *own], ())

        def check(reply: drafts.Ladders) -> ReplyReview:
            changed = replace(draft, ladders=reply.nodes)
            return self._review(changed, "ladders", _unlike(reply.nodes, wanted), nodes=wanted)

        reply: drafts.Ladders = await self._ask(
            "ladders", drafts.Ladders, check, text=drafts.shown(draft), wanted=list(wanted)
        )
        return reply.nodes

    async def _disclosure(self, draft: Draft) -> tuple[Draft, list[str]]:
        """Return the draft with its disclosure, or without it and why."""
        paper = PaperText(draft.paper, self._document.text, self._document.file)
        try:
            task = await disclose_paper(paper, self._chat, task_id=self._id, seed=self._seed, keep=self._on_reply)
        except AuthoringError as error:
            return draft, [f"disclosure: {error}"]
        claims = {claim.id: claim.text for claim in task.disclosure.claims}

        def disclosed(reply: drafts.Evidence) -> Draft:
            rested = tuple(
                claim.model_copy(update={"evidence": reply.evidence[claim.id]}) for claim in task.disclosure.claims
            )
            return replace(draft, disclosure=task.disclosure.model_copy(update={"claims": rested}))

        def check(reply: drafts.Evidence) -> ReplyReview:
            barring = _unlike(reply.evidence, dict.fromkeys(claims, ()))
            return ReplyReview(barring) if barring else self._review(disclosed(reply), "evidence")

        reply = await self._ask("evidence", drafts.Evidence, check, text=drafts.shown(draft), claims=claims)
        self._on_pass("disclosure")
        return disclosed(reply), []

    async def _each_subtopic(self, draft: Draft, write: Any) -> list[Mapping[str, Any]]:
        async def one(subtopic: str) -> Mapping[str, Any]:
            found: Mapping[str, Any] = await write(draft, subtopic)
            self._on_pass(f"{write.__name__.removeprefix('_')} of {subtopic}")
            return found

        return await all_results(map(one, draft.subtopics))

    async def _ask(self, name: str, model: Any, check: Any, *, text: str, **values: Any) -> Any:
        return await self._asker.ask(
            f"author_{name}", model, {"text": text, "fence": fence(text), **_BOUNDS, **values}, check
        )

    def _review(
        self,
        draft: Draft,
        name: str,
        barring: Collection[object] = (),
        mendable: Collection[object] = (),
        nodes: Collection[str] | None = None,
    ) -> ReplyReview:
        """Return the faults of a reply: those of the loader bar it, those of the linter's rules of a pass do not."""
        if barring:
            return ReplyReview([*barring], [*mendable])
        try:
            tree = parsed(draft)
        except TreeError as error:
            return ReplyReview(error.faults, [*mendable])
        codes = _RULES.get(name, "").split()
        found = lint_tree(tree, self._embed if name == "ladders" else None, only=codes) if codes else []
        own = [each for each in found if (nodes is None or each.node in nodes) and _mendable(each)]
        return ReplyReview((), [*mendable, *own])


def _mendable(fault: Fault) -> bool:
    """Tell whether a pass can mend a fault. Of T921, on hints and questions alike, only hints."""
    return fault.code != "T921" or any(f".hints[{level}]" in fault.path for level in range(HINT_LEVELS - 1))


def parsed(draft: Draft) -> Tree:
    """Return the tree of a draft. Raise `TreeError` with the faults of the loader."""
    return parse_tree(_json(tree_document(draft)), draft.tree_id)


def studies_wanted(subtopics: int) -> int:
    """Return the number of studies with which the fewest axes can be read as often as the linter asks."""
    readings = axes_wanted(subtopics)[0] * rules.MIN_READERS
    if subtopics <= rules.SMALL:
        return readings + rules.SMALL_CONTROLS - rules.SMALL_PAIRS
    return -int(-(readings + rules.MIN_CONTROLS) // (1 + rules.MAX_PAIR_SHARE))


REPLY_TOKENS = {
    "outline": 127, "studies": 668, "contraries": 347, "conclusions": 147, "edges": 27, "ladders": 1370, "evidence": 5,
}  # fmt: skip
"""Tokens of a reply per subtopic, estimated from the same parts of the shipped trees: means over 120 subtopics."""


def estimate(document: PaperDocument, subtopics: int) -> tuple[Usage, Usage]:
    """Return the least and the most that `Author.write` takes: with no reply and with every reply faulty but the last.

    Tokens are estimated, those of replies by `REPLY_TOKENS`. The disclosure counts as four requests of the paper.
    """
    paper = estimated_tokens({"role": "user", "content": document.text})
    least = most = Usage()
    written = 0
    for name in PASSES:
        parts = subtopics if name in ("contraries", "ladders") else 1
        reply = REPLY_TOKENS[name] * subtopics // parts
        prompt = _template_tokens(name) + written + paper * (name in ("outline", "studies", "contraries"))
        one = Usage(replies=1, prompt_tokens=prompt, completion_tokens=reply)
        again = Usage(replies=1, prompt_tokens=prompt + 2 * reply, completion_tokens=reply)
        least, most = least + one * parts, most + (one + again * REPAIRS) * parts
        written += reply * parts if name in ("outline", "studies", "contraries") else 0
    told = Usage(replies=1, prompt_tokens=paper, completion_tokens=REPLY_TOKENS["evidence"]) * len(WAVES)
    return least + told, most + told * (1 + DISCLOSURE_REPAIRS)


def _template_tokens(name: str) -> int:
    folder = resources.files("inquitree_gym.prompts").joinpath("templates")
    texts = (folder.joinpath(f"author_{each}.md").read_text(encoding="utf-8") for each in ("system", name))
    return sum(estimated_tokens({"role": "user", "content": text}) for text in texts)


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def _joined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _doi(written: str) -> str:
    """Return a DOI without its resolver."""
    return written.strip().removeprefix("https://doi.org/").removeprefix("doi:").strip()


def _unlike(given: Mapping[str, Any], wanted: Mapping[str, Collection[str]]) -> list[str]:
    """Return what a reply by id lacks or has too much."""
    missing = [f"'{name}' is missing" for name in wanted if name not in given]
    return missing + [f"'{name}' was not asked for; leave it out" for name in given if name not in wanted]
