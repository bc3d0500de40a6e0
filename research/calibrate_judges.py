"""Judge conclusions whose scores are known: ``python -m research.calibrate_judges``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from inquitree_gym.cli import judge_verb as cli
from inquitree_gym.cli import output
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.judges.llm import JudgeOptions
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.judging.registry import make_judges
from inquitree_gym.llm import Budget
from inquitree_gym.results.offline_judging import JudgingResult
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree
from research.agreement import agreement, agreement_table, agreements_as_plain, item_pairs
from research.datasets import CONCLUSION_KINDS, CONCLUSIONS, ConclusionSet, load_conclusions
from research.judge_calibration import Calibration, calibrate, expected_means, kind_means, two_digits
from research.static.proposals import LabelledSet

SetType = TypeVar("SetType", bound=LabelledSet)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def calibrate_judges(  # noqa: PLR0913  (one parameter per flag)
    judges: cli.JudgeOption = "local",
    conclusions: Annotated[Path, typer.Option(help="Folder of labelled conclusions.")] = CONCLUSIONS,
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
    repeats: Annotated[int, typer.Option(min=1, help="Answers of an llm judge per order of the items.")] = 1,
    base_url: output.BaseUrlOption = None,
    max_cost: output.MaxCostOption = None,
    max_total_tokens: output.MaxTotalTokensOption = None,
    max_concurrency: cli.MaxConcurrencyOption = 8,
    cache: cli.CacheOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Judge conclusions of known worth, and compare the judges with the expected scores and with each other."""
    budget = Budget(max_cost, max_total_tokens)
    options = JudgeOptions(repeats=repeats, base_url=base_url, cache=cache, budget=budget)
    panel = make_judges(output.split(judges), options)
    sets = select(load_conclusions(conclusions), output.split(papers))
    found = [_calibrate(sets, judge, max_concurrency) for judge in panel]
    agreed = {(each.judge, "expected"): each.with_expected for each in found} | {
        (one.judge, other.judge): agreement(item_pairs(one.by_conclusion, other.by_conclusion))
        for index, one in enumerate(found)
        for other in found[index + 1 :]
    }
    if as_json:
        output.print_json({"judges": [_as_plain(each) for each in found], "agreement": agreements_as_plain(agreed)})
        return
    output.print_table("Mean S by kind of conclusion", _table(found))
    output.print_table("Agreement", agreement_table(agreed))
    for each in found:
        if wrong := [judged.tree for judged in each.judged if not judged.holds]:
            output.note(f"{each.judge}: the order does not hold on {', '.join(wrong)}")
        unscored = sum(judged.unscored for judged in each.judged)
        done = len(each.judged) * len(CONCLUSION_KINDS)
        cli.print_usage(
            JudgingResult(
                judge=each.judge,
                version=1,
                judged=done,
                found=0,
                unscored=unscored,
                usage=each.usage,
                unread=each.unread,
            )
        )


def _calibrate(sets: Sequence[ConclusionSet], judge: AsyncJudge[Tree], max_concurrency: int) -> Calibration:
    with output.progress(f"{judge.name} judging", len(sets) * len(CONCLUSION_KINDS)) as advance:
        return asyncio.run(calibrate(sets, judge, max_concurrency, advance))


def select(sets: Sequence[SetType], names: Sequence[str]) -> list[SetType]:
    """Return the sets of some trees, given by id or paper number.

    Raises:
        OptionError: there is no set of a tree.
    """
    wanted = {f"paper{name}" if name.isascii() and name.isdigit() else name for name in names}
    known = {each.tree for each in sets}
    if unknown := wanted - known - {ALL}:
        raise OptionError(f"no calibration conclusions for {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [each for each in sets if ALL in wanted or each.tree in wanted]


def _table(found: Sequence[Calibration]) -> list[list[str]]:
    lines = [["judge", *CONCLUSION_KINDS, "error", "order holds"]]
    for each in found:
        error = clustered_mean((judged.tree, judged.error) for judged in each.judged).mean
        holds = f"{sum(judged.holds for judged in each.judged)} of {len(each.judged)}"
        lines.append([each.judge, *map(two_digits, (*kind_means(each.judged).values(), error)), holds])
    lines.append(["expected", *map(two_digits, expected_means(found[0].judged).values()), "0.00", ""])
    return lines


def _as_plain(found: Calibration) -> dict[str, Any]:
    trees = [
        {"tree": each.tree, "means": each.means, "error": each.error, "holds": each.holds, "unscored": each.unscored,
         "scores": each.scores, "expected": each.expected}
        for each in found.judged
    ]  # fmt: skip
    return {"judge": found.judge, "trees": trees, "usage": asdict(found.usage), "unread": found.unread}


if __name__ == "__main__":
    output.run_app(app)
