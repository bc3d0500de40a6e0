"""Pages of the site about trees: a page and a picture for every shipped tree, and the table of all of them.

The pages hold nothing that is not in the tree or in the record of its check in research/validity. The pictures need
the extra ``plots``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import get_args

from inquitree_gym.trees import CANARY, Tree, builtin_ids, load_tree
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.document import Axis, ConclusionItem, Study, Subtopic
from inquitree_gym.trees.drawing import depths, layers, svg
from inquitree_gym.trees.fields import Paper, PublicationDate, Strength

CHECKS = Path(__file__).resolve().parent.parent / "research" / "validity"

STRENGTHS: tuple[Strength, ...] = get_args(Strength)
MEANINGS: dict[Strength, str] = {
    "full_text": "read in the text of the article or of its preprint",
    "released_material": "read in code, data, figures or legends that the authors released",
    "recomputed": "recomputed from released data or code",
    "abstract": "read in an abstract only",
    "secondary": "read in a digest, press report, index or third-party notes",
    "unconfirmed": "confirmed by no source",
}
WEAK, WEAKER = STRENGTHS[STRENGTHS.index("abstract") :], "abstract or weaker"


def pages() -> dict[str, str]:
    """Return every page and picture by its path within docs/trees."""
    trees = [load_tree(name) for name in builtin_ids()]
    found = {"README.md": overview(trees)}
    for tree in trees:
        found[f"{tree.id}.md"] = page(tree)
        found[f"figures/{tree.id}.svg"] = svg(tree)
    return found


def overview(trees: Iterable[Tree]) -> str:
    """Return the page with the tables of all trees: their papers and shapes, and the support of their statements."""
    trees = list(trees)
    support = Counter(strength for tree in trees for strength in _strengths(tree))
    totals = (sum(len(tree.subtopics) for tree in trees), sum(len(tree.studies) for tree in trees))
    shapes = [*map(_overview_row, trees), ["all", "", "", "", "", *map(str, totals), "", "", _weak_share(support)]]
    shares = [[_page_link(tree), *_shares(Counter(_strengths(tree)))] for tree in trees]
    numbers = ("n", "studies", "depth", "width", "entries", WEAKER, *map(_spoken, STRENGTHS))
    return _document(
        _note("the trees"),
        "# The research trees",
        f"The package ships research trees of {len(trees)} published papers. Each tree has a page with the citation, "
        "the graph, the subtopics and studies, the source of every statement, and the findings of its reviewers.",
        "The columns of the table are:",
        "- *tier*: evidence behind the tree; A the full text of the paper, B its abstract with data or code, C its "
        "abstract\n"
        "- *n*: number of subtopics\n"
        "- *depth*: number of subtopics in the longest chain of prerequisites\n"
        "- *width*: largest number of subtopics at one depth\n"
        f"- *{WEAKER}*: percentage of the statements whose [support](#strength-of-support) is no stronger than an "
        "abstract; a high percentage means a weakly supported tree",
        _table(["id", "title", "journal", "date", "tier", *numbers[:4], WEAKER], shapes, numbers),
        "## Strength of support",
        "Each entry records the source of one statement of a tree, and how directly the source supports it. The table "
        "lists the classes from strongest to weakest. The class does not say how certain the finding is.",
        _table(["class", "meaning"], [[_spoken(strength), MEANINGS[strength]] for strength in STRENGTHS]),
        "Share of each class in the entries of a tree, in per cent:",
        _table(["id", *numbers[4:5], *numbers[6:], WEAKER], [*shares, ["all", *_shares(support)]], numbers),
    )


def page(tree: Tree) -> str:
    """Return the page of one tree."""
    return _document(
        _note(
            f"the [tree](../../inquitree_gym/trees/data/{tree.id}.json) and its "
            f"[checks](../../research/validity/{tree.id}.json)"
        ),
        f"# {tree.id}: {_plain(tree.paper.title)}",
        f'[All trees](README.md) · `inquitree show {tree.id}` · `gymnasium.make("InquiTree-{tree.id}-v0")`',
        _citation(tree.paper),
        "Spoilers: axes, results and conclusion items are collapsed below. The sections on provenance and reviews "
        "mention them openly.",
        "## Topic",
        f"> {_plain(tree.topic)}",
        _size(tree),
        "## Graph",
        f"![Subtopics of {tree.id} and their prerequisites](figures/{tree.id}.svg)",
        "An arrow leads from a prerequisite to the subtopic that needs it. A circle is a study.",
        "## Subtopics",
        _table(["id", "name", "question", "prerequisites"], map(_subtopic_row, tree.subtopics)),
        *_axes(tree.axes),
        "## Studies",
        _OUTCOMES,
        *(block for subtopic in tree.subtopics for block in _studies(subtopic)),
        "## Conclusion items",
        *_folded("Conclusion items (spoilers)", _conclusions(tree.conclusions)),
        *([] if tree.disclosure is None else _disclosure(tree.disclosure)),
        *_provenance(tree),
        *_reviews(tree),
    )


def _check_row(row: dict[str, str]) -> list[str]:
    mended = "yes" if row["mended"] else ""
    return [row["node"], _plain(row["field"]), row["verdict"], _plain(row["note"]), mended]


def _note(origin: str) -> str:
    return f"> Generated from {origin}.\n>\n> {CANARY}"


def _citation(paper: Paper) -> str:
    doi = f" [doi:{_plain(paper.doi)}](https://doi.org/{paper.doi})." if paper.doi else ""
    return (
        f"**Paper.** {_plain(', '.join(paper.authors))} ({paper.year}). {_plain(paper.title)}. "
        f"*{_plain(paper.journal)}*, published {_date(paper.published)}.{doi} "
        f"Licence of the paper: {_plain(paper.licence)}."
    )


def _size(tree: Tree) -> str:
    depth, width = _depth_and_width(tree)
    return (
        f"{len(tree.subtopics)} subtopics, {len(tree.studies)} studies, {len(tree.conclusions)} conclusion items; "
        f"depth {depth}, width {width}; evidence tier {tree.provenance.tier}; version {tree.version} of the tree."
    )


_OUTCOMES = (
    "A result is told by the poles of the axes that the study reads, in their order. In a world it is the text of its "
    "poles, and a fake is the text with one pole changed. A control reads no axis. Findings of worlds other than the "
    "actual one are fiction."
)


def _axes(axes: Sequence[Axis]) -> Iterator[str]:
    yield "## Axes"
    yield f"{prod(len(axis.poles) for axis in axes)} worlds: each takes one pole of every axis."
    rows = []
    for axis in axes:
        poles = (
            f"{i}: {_plain(pole)}" + (" (actual)" if i == axis.actual else "") for i, pole in enumerate(axis.poles)
        )
        rows.append([axis.id, _plain(axis.question), "<br>".join(poles)])
    yield from _folded("Axes (spoilers)", _table(["id", "question", "poles"], rows))


def _subtopic_row(subtopic: Subtopic) -> list[str]:
    needs = "<br>".join(f"{each.id}: {_plain(each.because)}" for each in subtopic.prerequisites) or "–"
    return [subtopic.id, _plain(subtopic.name), _plain(subtopic.text), needs]


def _studies(subtopic: Subtopic) -> Iterator[str]:
    yield f"### {subtopic.id} · {_plain(subtopic.name)}"
    yield _table(["id", "protocol"], ([_study_name(study), _plain(study.text)] for study in subtopic.studies))
    rows = [row for study in subtopic.studies for row in _result_rows(study)]
    yield from _folded("Results (spoilers)", _table(["study", "poles", "text", "axes"], rows))


def _study_name(study: Study) -> str:
    return study.id if study.result.axes else f"{study.id} (control)"


def _result_rows(study: Study) -> Iterator[list[str]]:
    axes = ", ".join(study.result.axes)
    for key, wordings in study.result.texts.items():
        for i, text in enumerate(wordings):
            yield [study.id, f"**{key or 'control'}**" if i == 0 else f"{key}, wording {i + 1}", _plain(text), axes]


def _conclusions(items: Iterable[ConclusionItem]) -> str:
    rows = []
    for item in items:
        needs = " and ".join(f"({' or '.join(group)})" if len(group) > 1 else group[0] for group in item.needs)
        statements = "<br>".join(f"({key}) {_plain(text)}" for key, text in item.texts.items())
        rows.append([item.id, ", ".join(item.axes), needs, statements])
    return _table(["id", "axes", "evidence needed", "statements"], rows)


def _disclosure(disclosure: Disclosure) -> Iterator[str]:
    yield "## Projection task"
    yield (
        "An agent projects the outcome of the study three times: from topic and question, then with the null "
        "hypothesis added, then with the procedure added."
    )
    steps = "<br>".join(f"{i}. {_plain(step)}" for i, step in enumerate(disclosure.procedure, 1))
    shown = [["topic", disclosure.topic], ["question", disclosure.question], ["null", disclosure.null_hypothesis]]
    told = [[name, _plain(text)] for name, text in shown]
    yield _table(["level", "text"], [*told, ["procedure", steps], ["domain", _plain(disclosure.domain)]])
    hidden = [["hypothesis", disclosure.hypothesis], ["outcome", disclosure.outcome]]
    claims = [
        [claim.id, _plain(claim.text), "<br>".join(map(_plain, claim.contraries)), ", ".join(claim.evidence)]
        for claim in disclosure.claims
    ]
    yield from _folded("Hypothesis and outcome (spoilers)", _table(["", "text"], [[a, _plain(b)] for a, b in hidden]))
    yield from _folded("Claims (spoilers)", _table(["id", "claim", "contraries", "evidence"], claims))


def _provenance(tree: Tree) -> Iterator[str]:
    yield "## Provenance"
    yield (
        "Facts are numbered as in the paper's fact sheet: F for findings, M for methods, B for background. See "
        "[Strength of support](README.md#strength-of-support) for the classes of strength."
    )
    rows = (
        [each.node, ", ".join(each.sources), ", ".join(each.facts), _spoken(each.strength), _plain(each.note)]
        for each in tree.provenance.support
    )
    yield _table(["node", "sources", "facts", "strength", "note"], rows)
    yield "### Sources"
    sources = tree.provenance.sources
    yield _table(["id", "source", "address"], ([each.id, _plain(each.what), _linked(each.address)] for each in sources))


def _reviews(tree: Tree) -> Iterator[str]:
    yield "## Reviews"
    yield (
        "The reviewer was not the author of the tree, and checked it against the fact sheet of the paper. "
        "[Who wrote and who checked](../../research/validity/README.md) says what each reader saw. Quotations are from "
        "the draft."
    )
    rows = json.loads((CHECKS / f"{tree.id}.json").read_text(encoding="utf-8"))["rows"]
    yield _table(["node", "part", "verdict", "note", "mended"], map(_check_row, rows))


def _overview_row(tree: Tree) -> list[str]:
    paper = tree.paper
    numbers = (len(tree.subtopics), len(tree.studies), *_depth_and_width(tree))
    facts = [_page_link(tree), _plain(paper.title), _plain(paper.journal), _date(paper.published)]
    facts.append(tree.provenance.tier or "–")
    return [*facts, *map(str, numbers), _weak_share(Counter(_strengths(tree)))]


def _page_link(tree: Tree) -> str:
    return f"[{tree.id}]({tree.id}.md)"


def _depth_and_width(tree: Tree) -> tuple[int, int]:
    return 1 + max(depths(tree).values()), max(map(len, layers(tree)))


def _strengths(tree: Tree) -> list[Strength]:
    return [support.strength for support in tree.provenance.support]


def _shares(support: Counter[Strength]) -> list[str]:
    """Return the number of entries, and the per cent of each strength and of the weak ones together."""
    shares = [_per_cent(support[strength], support.total()) for strength in STRENGTHS]
    return [str(support.total()), *shares, _weak_share(support)]


def _weak_share(support: Counter[Strength]) -> str:
    return _per_cent(sum(support[strength] for strength in WEAK), support.total())


def _per_cent(count: int, total: int) -> str:
    return f"{100 * count / total:.0f}" if total else "–"


def _spoken(strength: Strength) -> str:
    return strength.replace("_", " ")


def _date(published: PublicationDate) -> str:
    return published.date[: {"day": 10, "month": 7, "year": 4}[published.precision]]


def _document(*blocks: str) -> str:
    return "\n\n".join(blocks) + "\n"


def _folded(summary: str, content: str) -> tuple[str, str, str]:
    return f"<details>\n<summary>{summary}</summary>", content, "</details>"


def _table(head: list[str], rows: Iterable[list[str]], numbers: Container[str] = ()) -> str:
    """Return a Markdown table. The columns named in ``numbers`` are aligned right."""
    lines = [head, ["---:" if name in numbers else "---" for name in head], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _plain(text: str) -> str:
    """Return text with its Markdown markup escaped, for use in tables too."""
    return re.sub(r"([\\`*_\[\]<>|~$])", r"\\\1", " ".join(text.split()))


def _linked(address: str) -> str:
    """Return an address with its URLs as links, one part per line."""
    words = ([f"<{word}>" if "://" in word else _plain(word) for word in part.split()] for part in address.split(" ; "))
    return "<br>".join(map(" ".join, words))
