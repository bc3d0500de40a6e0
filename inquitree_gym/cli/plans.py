"""What a run would do, and what it may cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from inquitree_gym.cli.output import as_table, out
from inquitree_gym.experiments.runs.estimating import REPLY_TOKENS, Estimate, estimate
from inquitree_gym.experiments.runs.folder import see_same_study
from inquitree_gym.experiments.runs.planning import Survey, survey
from inquitree_gym.experiments.runs.study import Study

LEGEND = (
    "Requests from 3n turns (every proposal taken at once) to n(2H + 3) (every one forced) or the turn limit, and the "
    f"conclusion; about 4 bytes of a prompt to a token, {REPLY_TOKENS} tokens to a reply, prices from litellm's list. "
    "Corrections, redone studies and reasoning come on top; torn episodes count whole, a cache does not."
)


def show_plan(study: Study, folder: Path) -> None:
    """Print what a run of ``study`` into ``folder`` would play and what its models may cost. Writes and asks nothing.

    Raises:
        LogError: the folder holds another study.
    """
    see_same_study(folder, study)
    found = survey(study, folder)
    out.print(as_table(f"Plan for {folder}", _plan_lines(study, found)))
    for cell, error in found.damaged.items():
        out.print(Text(f"damaged, and not played: {cell.file_name}: {error}"), soft_wrap=True)
    if study.models:
        out.print(as_table("What the models may be asked", _estimate_lines(estimate(study, found.to_do))))
        out.print(Text(LEGEND))


def _plan_lines(study: Study, found: Survey) -> Iterator[list[str]]:
    parts = (found.whole, found.torn, found.missing, found.damaged)
    counts = [Counter((cell.agent, cell.model, cell.fake_level) for cell in part) for part in parts]
    yield ["agent", "model", "fakes", "episodes", "there", "torn", "missing", "damaged"]
    for kind in dict.fromkeys((cell.agent, cell.model, cell.fake_level) for cell in study.cells()):
        numbers = [count[kind] for count in counts]
        yield [*map(str, kind), *map(str, (sum(numbers), *numbers))]
    totals = [len(part) for part in parts]
    yield ["all", "", "", *map(str, (sum(totals), *totals))]


def _estimate_lines(estimates: list[Estimate]) -> Iterator[list[str]]:
    yield ["model", "episodes", "requests", "prompt tokens", "reply tokens", "US dollars"]
    for each in estimates:
        pairs = zip(each.least, each.most, strict=True)
        dollars = "unknown" if each.dollars is None else f"{each.dollars[0]:,.2f} – {each.dollars[1]:,.2f}"
        yield [each.model, str(each.episodes), *(f"{low:,} – {high:,}" for low, high in pairs), dollars]
