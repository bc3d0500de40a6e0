"""Judge labelled conclusions of inquiries: ``python -m research.calibrate_played``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.cli import judge_verb as cli
from inquitree_gym.cli import output
from inquitree_gym.inquiry.judges.llm import JudgeOptions
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.judging.registry import make_judges
from inquitree_gym.llm import Budget
from inquitree_gym.results.offline_judging import JudgingResult
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree
from research.calibrate_judges import select
from research.judge.conclusions import PLAYED, PlayedConclusions, load_played
from research.judge_calibration import two_digits
from research.played_calibration import Group, LabelFit, PlayedCalibration, judge_played

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def calibrate_played(  # noqa: PLR0913  (one parameter per flag)
    judges: cli.JudgeOption = "local",
    conclusions: Annotated[Path, typer.Option(help="Folder of labelled conclusions of inquiries.")] = PLAYED,
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
    by: Annotated[Group | None, typer.Option(help="Show a line for each of these, too.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Answers of an llm judge per order of the items.")] = 1,
    base_url: output.BaseUrlOption = None,
    max_cost: output.MaxCostOption = None,
    max_total_tokens: output.MaxTotalTokensOption = None,
    max_concurrency: cli.MaxConcurrencyOption = 8,
    cache: cli.CacheOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Judge conclusions that were written after an inquiry, and compare the judges with the labels."""
    budget = Budget(max_cost, max_total_tokens)
    panel = make_judges(
        output.split(judges), JudgeOptions(repeats=repeats, base_url=base_url, cache=cache, budget=budget)
    )
    sets = select(load_played(conclusions), output.split(papers))
    found = [_judged(sets, judge, max_concurrency) for judge in panel]
    if as_json:
        output.print_json([_as_plain(each, by) for each in found])
        return
    for each in found:
        output.print_table(f"{each.judge} beside the labels", _table(each.fits(by)))
        fitted = each.fits()["all"]
        cli.print_usage(
            JudgingResult(
                judge=each.judge,
                version=1,
                judged=each.conclusions,
                found=0,
                unscored=fitted.grades.unscored,
                usage=each.usage,
                unread=each.unread,
            )
        )


def _judged(sets: Sequence[PlayedConclusions], judge: AsyncJudge[Tree], max_concurrency: int) -> PlayedCalibration:
    with output.progress(f"{judge.name} judging", sum(len(each.conclusions) for each in sets)) as advance:
        return asyncio.run(judge_played(sets, judge, max_concurrency, advance))


def _table(fits: Mapping[str, LabelFit]) -> list[list[str]]:
    lines = [["conclusions", "items", "mean error", "κ, grades", "κ, verdicts", "rank order", "mean S", "labelled"]]
    for name, each in fits.items():
        means = map(two_digits, (each.verdict_kappa, each.rank_order, each.judged, each.labelled))
        lines.append([name, str(each.grades.items), str(each.error), str(each.grades), *means])
    return lines


def _as_plain(found: PlayedCalibration, by: Group | None) -> dict[str, Any]:
    return {"judge": found.judge, "fits": found.fits(by), "items": found.items, "usage": found.usage,
            "unread": found.unread}  # fmt: skip


if __name__ == "__main__":
    output.run_app(app)
