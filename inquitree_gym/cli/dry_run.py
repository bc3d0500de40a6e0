"""What a run would do, and what it may cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from inquitree_gym.cli.output import as_table, err, out, print_json
from inquitree_gym.llm.model import Lack
from inquitree_gym.runner.estimating import REPLY_TOKENS, Estimate, estimate
from inquitree_gym.runner.folder import RunStatus, check_manifest, run_status
from inquitree_gym.runner.models import missing_keys
from inquitree_gym.runner.study import StudyConfig

LEGEND = (
    "Requests from 3n turns (every proposal taken at once) to n(2H + 3) (every one forced) or the turn limit, and the "
    f"conclusion; about 4 bytes of a prompt to a token, {REPLY_TOKENS} tokens to a reply, prices from litellm's list. "
    "Corrections, redone studies and reasoning come on top; torn episodes count whole, a cache does not."
)
STATES = ("there", "torn", "missing", "damaged")


class _Kind(NamedTuple):
    """Episodes that differ in tree and seed alone, by what the folder holds of them."""

    agent: str
    model: str
    fake_level: int
    episodes: int
    there: int
    torn: int
    missing: int
    damaged: int


def show_plan(study: StudyConfig, folder: Path, as_json: bool) -> None:
    """Print what a run of ``study`` into ``folder`` would play and what its models may cost. Writes and asks nothing.

    Raises:
        LogError: the folder holds another study.
    """
    check_manifest(folder, study)
    found = run_status(folder, study.specs())
    kinds, estimates, lacks = (
        _kinds(study, found),
        estimate(study, found.remaining),
        missing_keys(study.models, {spec.model for spec in found.remaining}),
    )
    if as_json:
        print_json(_as_plain(folder, kinds, found, estimates, lacks))
        return
    out.print(as_table(f"Plan for {folder}", _plan_lines(kinds)))
    for cell, error in found.damaged.items():
        out.print(Text(f"damaged, and not played: {cell.file_name}: {error}"), soft_wrap=True)
    if study.models:
        out.print(as_table("What the models may be asked", _estimate_lines(estimates)))
        out.print(Text(LEGEND))
    tell_lacks(lacks.values())


def tell_lacks(lacks: Iterable[Lack]) -> None:
    """Say on the error stream which keys are missing."""
    for lack in lacks:
        more = "" if lack.certain else "; without credentials of another kind every request will be refused"
        err.print(Text(f"no key here: {lack.said}{more}"), soft_wrap=True)


def _kinds(study: StudyConfig, found: RunStatus) -> list[_Kind]:
    parts = (found.complete, found.torn, found.missing, found.damaged)
    counts = [Counter((cell.agent, cell.model, cell.fake_level) for cell in part) for part in parts]
    kinds = dict.fromkeys((cell.agent, cell.model, cell.fake_level) for cell in study.specs())
    return [_Kind(*kind, sum(count[kind] for count in counts), *(count[kind] for count in counts)) for kind in kinds]


def _plan_lines(kinds: Sequence[_Kind]) -> Iterator[list[str]]:
    yield ["agent", "model", "fakes", "episodes", *STATES]
    for kind in kinds:
        yield [*map(str, kind)]
    yield ["all", "", "", *(str(sum(getattr(kind, name) for kind in kinds)) for name in ("episodes", *STATES))]


def _estimate_lines(estimates: Sequence[Estimate]) -> Iterator[list[str]]:
    yield ["model", "episodes", "requests", "prompt tokens", "reply tokens", "US dollars"]
    for each in estimates:
        pairs = zip(each.least, each.most, strict=True)
        dollars = "unknown" if each.dollars is None else f"{each.dollars[0]:,.2f} – {each.dollars[1]:,.2f}"
        yield [each.model, str(each.episodes), *(f"{low:,} – {high:,}" for low, high in pairs), dollars]


def _as_plain(
    folder: Path, kinds: Sequence[_Kind], found: RunStatus, estimates: Sequence[Estimate], lacks: Mapping[str, Lack]
) -> dict[str, Any]:
    models = [{**each._asdict(), "least": each.least._asdict(), "most": each.most._asdict()} for each in estimates]
    return {
        "folder": str(folder),
        "episodes": [kind._asdict() for kind in kinds],
        "models": models,
        "damaged": {cell.file_name: error for cell, error in found.damaged.items()},
        "no_key": {label: lack._asdict() for label, lack in lacks.items()},
    }
