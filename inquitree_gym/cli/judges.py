"""Verbs about judges: judge, calibrate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from inquitree_gym.analysis.judging import JudgedRun, agreements, concluded, judge_run, read_judged
from inquitree_gym.analysis.summary import written
from inquitree_gym.cli.output import as_table, err, out, print_json, progress, split
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.errors import OptionError
from inquitree_gym.judges import Panelist, Spent, Terms, make_panel
from inquitree_gym.llm import Budget
from inquitree_gym.runner.study import ALL
from inquitree_gym.scoring import EpisodeScore, clustered_mean
from inquitree_gym.scoring.agreement import Agreement, agreement, item_pairs
from research.validity.calibration import KINDS, Calibration, ConclusionSet, calibrate
from research.validity.sets import load_sets

app = typer.Typer()

JudgeOption = Annotated[str, typer.Option("--judge", help="Judges, comma-separated: local, nli:MODEL, llm:MODEL.")]
RepeatsOption = Annotated[int, typer.Option(min=1, help="Answers of an llm judge per order of the items.")]
BaseUrlOption = Annotated[str | None, typer.Option(help="Server of the llm judges; without it their providers'.")]
MaxCostOption = Annotated[float | None, typer.Option(help="US dollars at which no more is asked.")]
MaxTotalTokensOption = Annotated[int | None, typer.Option(help="Tokens at which no more is asked.")]
AtOnceOption = Annotated[int, typer.Option("--max-concurrency", min=1, help="Conclusions judged at the same time.")]
CacheOption = Annotated[Path | None, typer.Option(help="Folder of replies; without it the user's cache folder.")]


@app.command("judge")
def judge_runs(  # noqa: PLR0913  (one parameter per flag)
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    judges: JudgeOption = "local",
    repeats: RepeatsOption = 1,
    base_url: BaseUrlOption = None,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: AtOnceOption = 8,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the conclusions of runs and keep what is found beside them; the same again does what is missing."""
    panel = make_panel(split(judges), Terms(repeats, base_url, cache, Budget(max_cost, max_total_tokens)))
    folders = list(dict.fromkeys(folder.resolve() for folder in run_folders))
    done = {str(folder): [_judged(folder, panelist, max_concurrency) for panelist in panel] for folder in folders}
    scores = {str(folder): read_judged(folder) for folder in folders}
    agreed = {str(folder): agreements(folder) for folder in folders}
    if as_json:
        print_json([_run_as_plain(folder, done[folder], scores[folder], agreed[folder]) for folder in done])
        return
    for folder in done:
        out.print(as_table(f"Judges of {folder}", _scores_table(scores[folder])))
        if agreed[folder]:
            out.print(as_table("Agreement", _agreement_table(agreed[folder])))
        for each in done[folder]:
            _tell(each.judge, each.judged, each.found, each.unscored, each.spent)


@app.command("calibrate")
def calibrate_judges(  # noqa: PLR0913  (one parameter per flag)
    judges: JudgeOption = "local",
    data: Annotated[Path, typer.Option(help="Folder with conclusions/.")] = Path("calibration"),
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
    repeats: RepeatsOption = 1,
    base_url: BaseUrlOption = None,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: AtOnceOption = 8,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put conclusions of known worth before judges, and tell how far they agree with it and with each other."""
    panel = make_panel(split(judges), Terms(repeats, base_url, cache, Budget(max_cost, max_total_tokens)))
    sets = _chosen(load_sets(data / "conclusions", ConclusionSet), split(papers))
    found = [_calibrated(sets, panelist, max_concurrency) for panelist in panel]
    agreed = {(each.judge, "expected"): each.with_expected for each in found} | {
        (one.judge, other.judge): agreement(item_pairs(one.by_conclusion, other.by_conclusion))
        for index, one in enumerate(found)
        for other in found[index + 1 :]
    }
    if as_json:
        print_json({"judges": [_calibration_as_plain(each) for each in found], "agreement": _plain_agreements(agreed)})
        return
    out.print(as_table("Mean S by kind of conclusion", _calibration_table(found)))
    out.print(as_table("Agreement", _agreement_table(agreed)))
    for each in found:
        if wrong := [judged.tree for judged in each.judged if not judged.holds]:
            err.print(Text(f"{each.judge}: the order does not hold on {', '.join(wrong)}"), soft_wrap=True)
        _tell(each.judge, len(each.judged) * len(KINDS), 0, sum(judged.unscored for judged in each.judged), each.spent)


def _judged(folder: Path, panelist: Panelist, max_concurrency: int) -> JudgedRun:
    with progress(f"{panelist.name} judging", len(concluded(folder))) as advance:
        return asyncio.run(judge_run(folder, panelist, max_concurrency, advance))


def _calibrated(sets: Sequence[ConclusionSet], panelist: Panelist, max_concurrency: int) -> Calibration:
    with progress(f"{panelist.name} judging", len(sets) * len(KINDS)) as advance:
        return asyncio.run(calibrate(sets, panelist, max_concurrency, advance))


def _chosen(sets: Sequence[ConclusionSet], names: Sequence[str]) -> list[ConclusionSet]:
    wanted = {f"paper{name}" if name.isascii() and name.isdigit() else name for name in names}
    known = {each.tree for each in sets}
    if strange := wanted - known - {ALL}:
        raise OptionError(f"no calibration conclusions for {', '.join(sorted(strange))}; there are {', '.join(known)}")
    return [each for each in sets if ALL in wanted or each.tree in wanted]


def _tell(judge: str, judged: int, found: int, unscored: int, spent: Spent) -> None:
    """Say on the error stream what judging did and took."""
    before = f"; judged before: {found}" if found else ""
    err.print(Text(f"{judge}: conclusions judged: {judged}{before}; items unscored: {unscored}"), soft_wrap=True)
    if not any(spent):
        return
    price = f"${spent.dollars:.4f}" + (f" and {spent.unpriced} of unknown price" if spent.unpriced else "")
    counts = {
        "from the cache": spent.cached,
        "failed": spent.failed,
        "left out for the budget": spent.skipped,
        "verdicts that could not be read": spent.unread,
    }
    rest = "".join(f"; {what}: {count}" for what, count in counts.items() if count)
    err.print(Text(f"{judge}: replies paid for: {spent.asked} ({spent.tokens} tokens, {price}){rest}"), soft_wrap=True)


def _scores_table(scores: Mapping[str, Sequence[EpisodeScore]]) -> list[list[str]]:
    lines = [["judge", "conclusions", "unscored", "mean S", "Q/|C|"]]
    for label, found in scores.items():
        items = [(score.tree, verdict.score) for score in found for verdict in score.verdicts]
        unscored = sum(value is None for _, value in items)
        means = [clustered_mean(items), clustered_mean((score.tree, score.quality_share) for score in found)]
        lines.append(
            [label, str(len(found)), str(unscored), *("\n".join(filter(None, written(each))) for each in means)]
        )
    return lines


def _agreement_table(found: Mapping[tuple[str, str], Agreement]) -> list[list[str]]:
    lines = [["judge", "with", "κ (linear)", "same grade", "mean difference", "items (trees)", "unscored"]]
    for (one, other), each in found.items():
        shares = ("–" if share is None else f"{share:.3f}" for share in (each.same, each.difference))
        lines.append([one, other, str(each), *shares, f"{each.items} ({each.trees})", str(each.unscored)])
    return lines


def _calibration_table(found: Sequence[Calibration]) -> list[list[str]]:
    lines = [["judge", *KINDS, "error", "order holds"]]
    for each in found:
        means = [clustered_mean((judged.tree, judged.means[kind]) for judged in each.judged).mean for kind in KINDS]
        error = clustered_mean((judged.tree, judged.error) for judged in each.judged).mean
        holds = f"{sum(judged.holds for judged in each.judged)} of {len(each.judged)}"
        lines.append([each.judge, *("–" if mean is None else f"{mean:.2f}" for mean in (*means, error)), holds])
    fair = [
        clustered_mean((judged.tree, score) for judged in found[0].judged for score in judged.expected[kind])
        for kind in KINDS
    ]
    lines.append(["expected", *(f"{each.mean:.2f}" for each in fair), "0.00", ""])
    return lines


def _run_as_plain(
    folder: str,
    done: Sequence[JudgedRun],
    scores: Mapping[str, Sequence[EpisodeScore]],
    agreed: Mapping[tuple[str, str], Agreement],
) -> dict[str, Any]:
    return {
        "run": folder,
        "judges": [{**each._asdict(), "spent": each.spent._asdict()} for each in done],
        "scores": {label: [score.as_plain() for score in found] for label, found in scores.items()},
        "agreement": _plain_agreements(agreed),
    }


def _calibration_as_plain(found: Calibration) -> dict[str, Any]:
    trees = [
        {"tree": each.tree, "means": each.means, "error": each.error, "holds": each.holds, "unscored": each.unscored,
         "scores": each.scores, "expected": each.expected}
        for each in found.judged
    ]  # fmt: skip
    return {"judge": found.judge, "trees": trees, "spent": found.spent._asdict()}


def _plain_agreements(found: Mapping[tuple[str, str], Agreement]) -> list[dict[str, Any]]:
    return [{"judge": one, "with": other, **each._asdict()} for (one, other), each in found.items()]
