"""The validity report: Markdown and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inquitree_gym.errors import require
from inquitree_gym.inquiry.judges.local import SETTINGS
from inquitree_gym.inquiry.results import EpisodeScore
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.results.summary import axis_name
from inquitree_gym.trees.rules import MAX_LEAK
from research.datasets import CONCLUSION_KINDS
from research.judge.report import fit_rows, gaming_rows, label_fit, sense_auc
from research.judge_calibration import expected_means, kind_means, two_digits
from research.played import played_rows, reader_rows
from research.proposals import ReadingShares
from research.reader.evidence import AUTHORS_OUT, TREES_OUT
from research.thresholds import rates, sweep
from research.validity_measures import LIMITS, REFERENCE_AGENTS, SEEDS, TreeFacts, Validity, strictly_rising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, GREEN, RED, AMBER, GREY = "#2b6cb0", "#2f855a", "#c53030", "#b7791f", "#718096"
MARKS = (0.35, 0.40, 0.45, 0.50, 0.55)
"""Thresholds of the table, besides the ones in force and chosen."""
TEMPLATE = Path(__file__).parent / "templates" / "validity.md"


def write_report(found: Validity, folder: Path) -> Path:
    """Write ``validity.md`` and its figures into ``folder``. Return the page.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    from jinja2 import Environment, StrictUndefined

    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    _save(figures / "threshold.svg", lambda axes: _draw_thresholds(axes, found))
    _save(figures / "ladders.svg", lambda axes: _draw_ladders(axes, found))
    _save(figures / "judge.svg", lambda axes: _draw_judge(axes, found))
    # Markdown, not HTML, from our own template and our own figures: nothing to escape.
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    values = (
        _tree_values(found) | _reading_values(found) | _reader_values(found) | _text_values(found) | _play_values(found)
    )
    values |= _judge_values(found)
    page = folder / "validity.md"
    page.write_text(template.render(values) + "\n", encoding="utf-8")
    return page


def _tree_values(found: Validity) -> dict[str, Any]:
    facts = found.facts
    heads = ["tree", "n", "studies", "faults", "nearest siblings", "topic echo", "oracle L (3n)", "oracle Q/\\|C\\|"]
    heads += ["worst case L (n(2H+3))", "random coverage", "random Q/\\|C\\|", "floor coverage", "floor Q/\\|C\\|"]
    return {
        "embedder": found.embedder.name,
        "digest": found.embedder.digest[:12],
        "trees": len(facts),
        "subtopics": sum(len(each.tree.subtopics) for each in facts),
        "studies": sum(len(each.tree.studies) for each in facts),
        "clean": sum(not each.faults for each in facts),
        "seeds": SEEDS,
        "echoes": sum(each.echo >= found.threshold for each in facts),
        "tree_table": _table(heads, (_tree_row(found, each) for each in facts)),
    }


def _tree_row(found: Validity, facts: TreeFacts) -> list[object]:
    tree = facts.tree
    scores = {
        name: [score for score in found.scores[name, "11n"] if score.task == tree.id] for name in REFERENCE_AGENTS
    }
    oracle, worst = scores["oracle"][0], scores["worst-case"][0].detail.trajectory
    chance = [_mean(scores[name], measure) for name in ("random", "random-menu") for measure in ("coverage", "Q/|C|")]
    return [
        tree.id,
        len(tree.subtopics),
        len(tree.studies),
        facts.faults,
        f"{facts.siblings:.2f}",
        f"{facts.echo:.2f}",
        f"{oracle.detail.trajectory.turns} ({oracle.detail.trajectory.fewest_turns})",
        f"{oracle.detail.quality_share:.2f}",
        f"{worst.turns} ({worst.most_turns})",
        *chance,
    ]


def _reading_values(found: Validity) -> dict[str, Any]:
    left = found.left_out
    wrong = [f"{kind} accepted" for kind in ("vague", "near miss", "off target", "foreign")]
    heads = ["τ", "understood", "misread", "refused", *wrong, "balance"]
    marks = sorted({*MARKS, found.threshold, found.chosen})
    curve = [rates(found.matched, mark) for mark in marks]
    by_tree = [
        (tree, rates([r for r in found.matched if r.tree == tree], found.threshold))
        for tree in dict.fromkeys(r.tree for r in found.matched)
    ]
    return {
        "proposals": len(found.matched),
        "top_table": _table(["", "right proposals", "top 1"], _top_rows(found)),
        "threshold_table": _table(heads, ([f"{value:.3f}" for value in (*at, at.balance)] for at in curve)),
        "by_tree_table": _table(
            ["tree", *heads[1:]], ([tree, *(f"{value:.2f}" for value in (*at[1:], at.balance))] for tree, at in by_tree)
        ),
        "tau": f"{found.threshold:.2f}",
        "chosen": f"{found.chosen:.3f}",
        "lowest": f"{min(each.threshold for each in left):.3f}",
        "highest": f"{max(each.threshold for each in left):.3f}",
        "left_understood": clustered_mean((each.tree, each.understood) for each in left),
        "left_balance": clustered_mean((each.tree, each.balance) for each in left),
    }


def _reader_values(found: Validity) -> dict[str, Any]:
    heads = ["nearest subtopic right", "nearest study right", "understood", "misread", "refused", "foreign taken"]
    names = ("nearest_subtopic", "nearest_study", "understood", "misread", "refused", "foreign")
    more = ("vague", "near_miss", "off_target")

    def shares(each: ReadingShares, wanted: Sequence[str] = names) -> list[object]:
        return [getattr(each, name) for name in wanted]

    rows = reader_rows(found.readers)
    return {
        "played": sum(each.origin == "played" for each in found.readers[TREES_OUT]),
        "players": len({each.author for each in found.readers[TREES_OUT] if each.origin == "played"}),
        "reader_table": _table(
            ["reader", "proposals", "n", "τ", *heads],
            ([row.reader, row.group, row.shares.proposals, row.threshold, *shares(row.shares)] for row in rows),
        ),
        "taken_table": _table(
            ["reader", "vague taken", "near misses taken", "off target taken"],
            ([row.reader, *shares(row.shares, more)] for row in rows if row.group == "written"),
        ),
        "author_table": _table(
            ["player", "n", *heads],
            ([name, each.proposals, *shares(each)] for name, each in played_rows(found.readers[AUTHORS_OUT], "author")),
        ),
        "played_tree_table": _table(
            ["tree", "n", "locked", "several", *(head for head in heads)],
            (
                [name, each.proposals, each.locked, each.several, *shares(each)]
                for name, each in played_rows(found.readers[AUTHORS_OUT], "tree")
            ),
        ),
        "labels": found.labels,
    }


def _top_rows(found: Validity) -> list[list[object]]:
    right = [each for each in found.matched if each.kind == "right"]
    rivals = {
        facts.tree.id: {s.id for sub in facts.tree.subtopics if len(sub.studies) > 1 for s in sub.studies}
        for facts in found.facts
    }
    groups = {
        "subtopics": [each for each in right if not each.is_study],
        "studies with a sibling": [each for each in right if each.target in rivals[each.tree]],
        "all studies": [each for each in right if each.is_study],
        "together": right,
    }
    return [
        [name, len(group), clustered_mean((each.tree, float(each.right_node)) for each in group)]
        for name, group in groups.items()
    ]


def _text_values(found: Validity) -> dict[str, Any]:
    leads = np.concatenate([facts.leads for facts in found.facts])
    return {
        "ladders": sum(len(facts.climb) for facts in found.facts),
        "rising": sum(strictly_rising(facts.climb) for facts in found.facts),
        "rising_chars": sum(strictly_rising(facts.tfidf_climb) for facts in found.facts),
        "leaks": len(leads),
        "leak_median": f"{np.median(leads):.3f}",
        "leak_99": f"{np.quantile(leads, 0.99):.3f}",
        "leak_max": f"{leads.max():.3f}",
        "leak_ceiling": f"{MAX_LEAK:.2f}",
        "word_leaks": sum(facts.word_leaks for facts in found.facts),
        "fake_table": _table(["features", "AUC"], found.separations.items()),
    }


def _play_values(found: Validity) -> dict[str, Any]:
    names = ("coverage", "unaided_coverage", "coverage_at_3n", "Q", "Q/|C|")
    rows = [
        [name, limit, *(_estimate(scores, measure) for measure in names), f"{_accepted(scores):.1%}"]
        for limit in LIMITS
        for (name, of), scores in found.scores.items()
        if of == limit
    ]
    heads = ["strategy", "limit", *(axis_name(name).replace("|", "\\|") for name in names), "accepted"]
    return {"shortcut_table": _table(heads, rows)}


def _judge_values(found: Validity) -> dict[str, Any]:
    rows = [
        [each.tree, *map(two_digits, (*each.means.values(), each.error)), "yes" if each.holds else "**no**"]
        for each in found.judged
    ]
    means = map(two_digits, kind_means(found.judged).values())
    expected = map(two_digits, expected_means(found.judged).values())
    errors = clustered_mean((each.tree, each.error) for each in found.judged)
    items, same, kappa = label_fit(found.played)
    return {
        "judged": len(rows),
        "holds": sum(each.holds for each in found.judged),
        "judge_table": _table(
            ["tree", *CONCLUSION_KINDS, "mean error", "order holds"],
            [*rows, ["**mean**", *means, two_digits(errors.mean), ""], ["expected", *expected, "0.00", ""]],
        ),
        "judge_error": errors,
        "claims": len(found.judge.senses),
        "auc": f"{sense_auc(found.judge.senses):.3f}",
        "settings": ", ".join(f"{name} {value:g}" for name, value in SETTINGS._asdict().items()),
        "played_conclusions": sum(len(each.conclusions) for each in found.played),
        "labelled_twice": items,
        "same_labels": f"{same:.3f}",
        "label_kappa": two_digits(kappa),
        "fit_table": _table(
            ["conclusions", "items", "mean error", "κ", "mean S", "labelled"], fit_rows(found.judge.items)
        ),
        "gaming_table": _table(
            ["kind", "claims", "bound", "tree left out", "shipped"], list(gaming_rows(found.judge.gaming, found.gaming))
        ),
    }


def _draw_thresholds(axes: Axes, found: Validity) -> None:
    curve = sweep(found.matched)
    x = [each.threshold for each in curve]
    colours = {"understood": GREEN, "misread": RED, "vague": AMBER, "near_miss": GREY, "off_target": BLUE}
    for name, colour in colours.items():
        label = name.replace("_", " ") + ("" if name in ("understood", "misread") else " accepted")
        axes.plot(x, [getattr(each, name) for each in curve], color=colour, label=label, linewidth=2)
    axes.axvline(found.threshold, color="black", linestyle=":", label=f"τ = {found.threshold:.2f}")
    axes.set(xlabel="threshold τ", ylabel="share of proposals", ylim=(0, 1))
    axes.legend(frameon=False)


def _draw_ladders(axes: Axes, found: Validity) -> None:
    climbs = (("MiniLM", BLUE, "climb", -0.12), ("character TF-IDF", AMBER, "tfidf_climb", 0.12))
    for name, colour, field, shift in climbs:
        rows = np.concatenate([getattr(facts, field) for facts in found.facts])
        x = np.arange(1, rows.shape[1] + 1) + shift
        axes.plot(x, rows.T, color=colour, alpha=0.06, linewidth=1)
        axes.plot(x, np.median(rows, axis=0), color=colour, linewidth=2.5, marker="o", label=f"{name}, median")
    axes.set(xlabel="hint level", ylabel="similarity to the target", xticks=[1, 2, 3, 4], ylim=(-0.1, 1.02))
    axes.legend(frameon=False)


def _draw_judge(axes: Axes, found: Validity) -> None:
    for position, kind in enumerate(CONCLUSION_KINDS):
        values = [mean for each in found.judged if (mean := each.means[kind]) is not None]
        spread = np.linspace(-0.18, 0.18, len(values))
        axes.scatter(position + spread, values, color=BLUE, alpha=0.45, s=18)
        axes.hlines(float(np.mean(values)), position - 0.3, position + 0.3, color="black", linewidth=2)
    axes.set(ylabel="mean S of a tree's conclusion", ylim=(-0.03, 1.03))
    axes.set_xticks(range(len(CONCLUSION_KINDS)), CONCLUSION_KINDS, rotation=20)


def _save(file: Path, draw: Callable[[Axes], None]) -> None:
    """Draw one figure and write it as SVG, the same bytes for the same content."""
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": file.name}):
        canvas = require("matplotlib.figure", "plots").Figure(figsize=(7, 4.2), layout="constrained")
        axes = canvas.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        canvas.savefig(file, facecolor="white", metadata={"Date": None})


def _mean(scores: Sequence[EpisodeScore], measure: str) -> str:
    return f"{np.mean([score.values[measure] or 0.0 for score in scores]):.2f}"


def _estimate(scores: Iterable[EpisodeScore], measure: str) -> str:
    return str(clustered_mean((score.task, score.values[measure]) for score in scores))


def _accepted(scores: Sequence[EpisodeScore]) -> float:
    taken = sum(score.detail.trajectory.accepted for score in scores)
    return taken / sum(score.detail.trajectory.choices for score in scores)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)
