"""The verb reproduce: the paper's tables and figures, each by one command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.cli.flags import flag_names, given
from inquitree_gym.cli.judge_verb import judge_stated
from inquitree_gym.cli.output import (
    REPLY_TOKENS,
    BaseUrlOption,
    CutoffsOption,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    note,
    note_missing,
    progress,
    split,
)
from inquitree_gym.cli.plan import show_plan
from inquitree_gym.cli.runs import (
    EffortsOption,
    EpisodesOption,
    ModelNamesOption,
    check_complete,
    note_services,
    play_study,
)
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.bounds.traversal import AGENTS, AgentTurns, SamplingPlan, measure_tree
from inquitree_gym.inquiry.commands.controls import load_trees, note_answers
from inquitree_gym.inquiry.judges.llm import JudgeOptions
from inquitree_gym.inquiry.judging import KIND
from inquitree_gym.inquiry.paper.figures import Reproduction, write_reproduction
from inquitree_gym.inquiry.paper.studies import STUDIES, Control, Target, paper_study, part_of_logs
from inquitree_gym.inquiry.probe import ProbeResult, probe, probe_items
from inquitree_gym.judging.registry import load_judge
from inquitree_gym.llm import Budget, BudgetedChat
from inquitree_gym.results.cutoff import ModelDates, load_models
from inquitree_gym.results.load import ScoredRun, load_run
from inquitree_gym.results.logs import find_logs
from inquitree_gym.results.offline_judging import stated_texts
from inquitree_gym.runner import RunOptions, StudyConfig
from inquitree_gym.runner.services import MAX_CONCURRENCY
from inquitree_gym.runs.specs import ModelSettings
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree

LLM = "llm"
"""Agent of the paper's experiments."""
RUN, CONTROL, REPLIES = "run", "control", "judge"
"""Folders of the episodes, shared by all targets, of the answers about bare statements, and of the judge's replies."""
EPISODES = 1_000
"""Episodes per tree for the bounds of an agent without an exact distribution."""
WITHOUT_RUN = {"target", "out_folder", "papers", "models"}
"""Parameters of a target that plays nothing."""

app = typer.Typer()


@app.command()
def reproduce(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    target: Annotated[Target, typer.Argument(metavar="TARGET", help="table2, fig3, fig4, table3 or bounds.")],
    model: ModelNamesOption = None,
    agent: Annotated[str | None, typer.Option(help="Agents, comma-separated; llm if a model is named.")] = None,
    judge: Annotated[
        str | None, typer.Option(help="Judge of the conclusions; llm-paper:MODEL is the paper's. None by default.")
    ] = None,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the pages and the run.")] = Path("reproduction"),
    base_url: BaseUrlOption = None,
    judge_base_url: Annotated[str | None, typer.Option(help="Server of the judge's model.")] = None,
    reasoning_effort: EffortsOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    papers: Annotated[str | None, typer.Option(help="Papers in the place of the experiment's own.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each paper; three by default, as in the paper.")] = None,
    models: CutoffsOption = None,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: EpisodesOption = MAX_CONCURRENCY,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its estimated cost only.")] = False,
) -> None:
    """Make a table or figure of the paper. Plays and judges only what is missing, then writes its page."""
    known = load_models(models)
    if target not in STUDIES:
        _write_without_run(target, context, known)
        return
    study, folder, budget = _study(target, context.params), out_folder / RUN, Budget(max_cost, max_total_tokens)
    if dry_run:
        show_plan(study, folder, as_json=False)
        return
    note_services(study)
    judging = JudgeOptions(base_url=judge_base_url, cache=out_folder / REPLIES, budget=budget)
    scoring = judge and load_judge(judge, judging, KIND)
    summary = play_study(study, folder, RunOptions(max_concurrency, budget), budget)
    logs = part_of_logs(find_logs(folder), study)
    if scoring:
        stated = stated_texts(logs, KIND, on_damaged=lambda damaged: None)  # they are named with the scores
        judge_stated(logs.path, stated, scoring, max_concurrency, KIND)
    with progress("scoring", len(logs.entries)) as step:
        run = load_run(logs, lambda spec: step(spec.task), judge)
    controls = _controls(study, run, out_folder / CONTROL, budget, max_concurrency) if target == "fig3" else ()
    _write(Reproduction(target, study, run, known, controls), out_folder)
    note_missing(run.missing)
    check_complete(summary)


def _study(target: Target, flags: Mapping[str, Any]) -> StudyConfig:
    """Return the study of a target with the agents, papers and runs of the command line.

    Raises:
        OptionError: no player is named.
    """
    named = split(flags["model"] or "")
    if not named and flags["agent"] is None:
        raise OptionError(
            f"{target} needs an agent that plays: name models with --model, or agents with --agent, as in random,oracle"
        )
    settings = {"base_url": flags["base_url"], "max_tokens": flags["reply_tokens"]}
    efforts = split(flags["reasoning_effort"] or "") or (None,)
    others = {"trees": flags["papers"] and split(flags["papers"]), "seeds": flags["seeds"]}
    return paper_study(
        STUDIES[target],
        agents=split(flags["agent"] or LLM),
        models=[{"model": name, "reasoning_effort": effort, **settings} for name, effort in product(named, efforts)],
        **{name: value for name, value in others.items() if value is not None},
    )


def _controls(study: StudyConfig, run: ScoredRun, folder: Path, budget: Budget, max_concurrency: int) -> list[Control]:
    """Ask every model of a study about the bare statements of its trees."""
    trees = load_trees(study.trees)
    return [Control.of(model, _ask(model, trees, folder, budget, max_concurrency), run) for model in study.models]


def _ask(
    model: ModelSettings, trees: Sequence[Tree], folder: Path, budget: Budget, max_concurrency: int
) -> ProbeResult:
    chat = BudgetedChat(model.chat_model(), budget)
    with progress(f"asking {model.label} about bare statements", sum(len(probe_items(tree)) for tree in trees)) as step:
        found = asyncio.run(probe(chat, trees, folder, 1, max_concurrency, lambda: step(""), "bare"))
    note_answers(f"{model.label}: bare statements", found.asked)
    return found


def _write_without_run(target: Target, context: typer.Context, known: Sequence[ModelDates]) -> None:
    """Write the page of a target that plays nothing.

    Raises:
        OptionError: a flag would be ignored.
    """
    if idle := given(context) - WITHOUT_RUN:
        raise OptionError(f"{target} plays nothing; leave out {flag_names(idle)}")
    flags = context.params
    trees = load_trees(split(flags["papers"] or ALL))
    turns = _measure(trees) if target == "bounds" else []
    _write(Reproduction(target, models=known, turns=turns, trees=trees), flags["out_folder"])


def _measure(trees: Sequence[Tree]) -> list[AgentTurns]:
    reader, found = load_embedder(DEFAULT_EMBEDDER), []
    with progress("measuring", len(trees)) as step:
        for tree in trees:
            found += measure_tree(tree, reader, AGENTS, SamplingPlan(EPISODES, 0))
            step(tree.id)
    return found


def _write(found: Reproduction, folder: Path) -> None:
    page, *_ = write_reproduction(found, folder)
    note(f"written: {page}, with its figures and tables beside it")
