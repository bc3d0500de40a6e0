"""``inquitree …``: parse, call, print. The only place that prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branches

from inquitree_gym.baselines import AGENT_NAMES, HumanAgent
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.rendering import to_terminal
from inquitree_gym.errors import InquiTreeError
from inquitree_gym.experiments import read_scores, report_table, rows, run_study
from inquitree_gym.experiments.report import MEASURES, as_plain
from inquitree_gym.experiments.study import ALL, Study, make_study, read_study
from inquitree_gym.experiments.validity import measure
from inquitree_gym.experiments.validity_report import write_report
from inquitree_gym.rollout import play as play_episode
from inquitree_gym.trees import CATALOGUE, Fault, Tree, builtin_ids, load_tree, user_files
from inquitree_gym.trees.drawing import depths, layers, mermaid, svg
from inquitree_gym.trees.lint import lint_tree

FAULTY, FAILED = 1, 2
"""Exit statuses: what was checked is at fault; the command could not be done."""
TABLE_MEASURES = ("coverage", "unaided", "Q", "Q/|C|", "turns L", "stretch")
DETAIL_MEASURES = ("coverage at 3n", "hints", "redo", "hits", "false alarms")

LEGEND = (
    "n: episodes (trees). Means over trees; [low, high] is the 95 % interval, t over tree means, from five trees on.\n"
    "turns L: up to the decision to conclude, below it the bounds [3n, n(2H+3)] of the trees. stretch: where L lies\n"
    "between its bounds, 0 at 3n and 1 at n(2H+3). unaided: subtopics entered on a decision that needed no hint."
)

app = typer.Typer(
    help="InquiTree research trees: list, look, play, run agents, score and report.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
NARROWEST = 118
"""Columns of a table that goes to a file or pipe; a terminal has its own."""

out = Console(width=None if sys.stdout.isatty() else NARROWEST)
err = Console(stderr=True)

TreeArgument = Annotated[str, typer.Argument(metavar="TREE", help="Id (paper12 or 12) or path of a tree file.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def main() -> None:
    """Run the command line; a foreseen error ends with one message and status 2."""
    try:
        app()
    except InquiTreeError as error:
        err.print(Text(f"error: {error}"))
        sys.exit(FAILED)


@app.command("list")
def list_trees(as_json: JsonOption = False) -> None:
    """List every paper of the pool and every tree of yours."""
    entries = [_describe(name) for name in (*CATALOGUE, *(name for name in user_files() if name not in CATALOGUE))]
    if as_json:
        _print_json(entries)
        return
    table = Table("id", "n", "depth", "width", "year", "journal", "title", title="Research trees")
    for entry in entries:
        columns = [entry[name] for name in ("id", "n", "depth", "width", "year", "journal", "title")]
        table.add_row(
            *("" if value is None else str(value) for value in columns), style="" if entry["playable"] else "dim"
        )
    out.print(table)


@app.command()
def show(
    tree: TreeArgument,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the graph in Mermaid's language.")] = False,
    svg_file: Annotated[Path | None, typer.Option("--svg", help="Write the graph to this SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole tree as JSON.")] = False,
    spoil: Annotated[bool, typer.Option(help="Show results and conclusions too.")] = False,
) -> None:
    """Draw a tree in the terminal, or export it."""
    found = load_tree(tree)
    if svg_file is not None:
        _write(svg_file, svg(found))
    if as_mermaid:
        out.print(mermaid(found), markup=False, highlight=False, soft_wrap=True, end="")
    elif as_json:
        _print_json(found.model_dump(mode="json"))
    elif svg_file is None:
        out.print(_branches(found, spoil))


@app.command()
def play(
    tree: TreeArgument,
    fake_level: Annotated[int, typer.Option(help="Fake results with probability LEVEL/10.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    max_turns: Annotated[int | None, typer.Option(help="Turn limit; without it n(2H+3).")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Keep the episode in this file; a torn one there is resumed.")
    ] = None,
) -> None:
    """Play an inquiry yourself. End a message with an empty line; Ctrl-C leaves."""
    rules: dict[str, Any] = {"fake_level": fake_level} | ({} if max_turns is None else {"max_turns": max_turns})
    env = InquiryEnv(tree, **rules)
    try:
        episode = play_episode(env, HumanAgent(_ask), seed, file=log)
    except (KeyboardInterrupt, EOFError):
        out.print("\nLeft before the end." + (f" Go on with the same command; the log is {log}." if log else ""))
        raise typer.Exit(FAILED) from None
    assert episode.footer is not None
    out.print(f"\n{episode.footer.observation}")
    out.print(f"Your conclusion scores Q/|C| = {episode.footer.episode_return:.2f} after {len(episode.turns)} turns.")


@app.command()
def run(  # noqa: PLR0913  (one parameter per flag)
    agent: Annotated[str, typer.Option(help=f"Agents, comma-separated: {', '.join(AGENT_NAMES)}.")] = "random,oracle",
    papers: Annotated[str, typer.Option(help="all, or ids, paper numbers and paths, comma-separated.")] = ALL,
    fake_level: Annotated[str, typer.Option(help="Fake levels, comma-separated, each 0 to 10.")] = "0",
    seeds: Annotated[int, typer.Option(help="Episodes per agent, tree and level.")] = 5,
    max_turns: Annotated[str, typer.Option(help="A number, default for n(2H+3), 3n, or none.")] = "default",
    embedder: Annotated[str, typer.Option(help="Embedder that reads the actions.")] = DEFAULT_EMBEDDER,
    threshold: Annotated[float | None, typer.Option(help="τ; without it the embedder's calibrated default.")] = None,
    study_file: Annotated[Path | None, typer.Option("--study", help="Read all of this from a TOML file.")] = None,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = Path("runs/latest"),
) -> None:
    """Run agents over trees, logging every episode. The same command again does only what is missing."""
    study = read_study(study_file) if study_file else make_study(
        agents=_split(agent), trees=_split(papers), fake_levels=_numbers(fake_level), seeds=seeds,
        max_turns=_turns(max_turns), embedder=embedder, threshold=threshold,
    )  # fmt: skip
    with _progress("playing", len(list(study.cells()))) as advance:
        summary = run_study(study, out_folder, lambda cell, played: advance(f"{cell.tree} {cell.agent}"))
    err.print(f"{summary.played} episodes played, {summary.found} were there already: {out_folder}")


@app.command()
def score(run_folder: RunArgument, as_json: JsonOption = False) -> None:
    """Score every episode of a run from its logs."""
    scores, missing = _read(run_folder)
    if as_json:
        path = [{**s.path._asdict(), "conclusion": None} for s in scores]
        _print_json(
            [
                {
                    name: getattr(s, name)
                    for name in ("tree", "agent", "fake_level", "seed", "judge", "quality", "quality_share")
                }
                | {"path": p, "verdicts": [v._asdict() for v in s.verdicts]}
                for s, p in zip(scores, path, strict=True)
            ]
        )
        return
    table = Table("tree", "agent", "fake level", "seed", *TABLE_MEASURES, title=f"Episodes of {run_folder}")
    for s in scores:
        values = (MEASURES[name](s) for name in TABLE_MEASURES)
        table.add_row(
            s.tree, s.agent, str(s.fake_level), str(s.seed), *("–" if v is None else f"{v:.3f}" for v in values)
        )
    out.print(table)
    _tell_missing(missing)


@app.command()
def report(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")],
    as_json: JsonOption = False,
) -> None:
    """Print the results of runs: means over trees, with a 95 % interval where five trees or more allow one."""
    scores, missing = [], []
    for folder in run_folders:
        found, torn = _read(folder)
        scores += found
        missing += torn
    table = rows(scores)
    if as_json:
        _print_json({"rows": [as_plain(row) for row in table], "missing": missing})
        return
    for title, measures in (("Results", TABLE_MEASURES), ("Path and vigilance", DETAIL_MEASURES)):
        out.print(_as_table(title, report_table(table, measures)))
    out.print(Text(LEGEND))
    _tell_missing(missing)


@app.command()
def check(
    trees: Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Ids or paths.")] = None,
    embedder: Annotated[
        str, typer.Option(help="Embedder for ladders and siblings; none leaves them out.")
    ] = DEFAULT_EMBEDDER,
    as_json: JsonOption = False,
) -> None:
    """Check trees for faults; status 1 when there are any."""
    names = [name for given in trees or [ALL] for name in (builtin_ids() if given == ALL else (given,))]
    faults: dict[str, list[dict[str, str]]] = {}
    with _progress("checking", len(names)) as advance:
        for name in names:
            faults[name] = [fault._asdict() for fault in _lint(load_tree(name), embedder)]
            advance(name)
    if as_json:
        _print_json(faults)
    for name, found in {} if as_json else faults.items():
        out.print(Text(f"{name}: " + ("clean" if not found else f"{len(found)} faults")))
        for fault in found:
            out.print(Text(f"  {fault['node']}: {fault['message']}"))
    raise typer.Exit(FAULTY if any(faults.values()) else 0)


@app.command()
def validity(
    data: Annotated[Path, typer.Option(help="Folder with proposals/ and conclusions/.")] = Path("calibration"),
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for validity.md and its figures.")] = Path("docs"),
    embedder: Annotated[str, typer.Option(help="Embedder that is measured.")] = DEFAULT_EMBEDDER,
) -> None:
    """Measure the trees, the matcher and the local judge, and write the validity report."""
    with err.status("measuring") as status:
        found = measure(data, load_embedder(embedder), lambda what: status.update(what))
    err.print(f"written: {write_report(found, out_folder)}")


def _lint(tree: Tree, embedder: str) -> list[Fault]:
    if embedder == "none":
        return lint_tree(tree)
    vectors = tree_vectors(tree, load_embedder(embedder))
    return lint_tree(tree, lambda texts: vectors.matrix(tuple(texts)))


def _describe(name: str) -> dict[str, Any]:
    entry = CATALOGUE.get(name)
    if name not in builtin_ids() and name not in user_files():
        title = entry.title if entry and entry.title else "(tree may not be distributed)"
        return {"id": name, "n": entry.subtopics if entry else None, "playable": False, "title": title} | dict.fromkeys(
            ("depth", "width", "year", "journal", "doi")
        )
    tree = load_tree(name)
    return {
        "id": name,
        "n": len(tree.subtopics),
        "playable": True,
        "title": tree.paper.title,
        "depth": 1 + max(depths(tree).values()),
        "width": max(map(len, layers(tree))),
        "year": tree.paper.year,
        "journal": tree.paper.journal,
        "doi": tree.paper.doi,
    }


def _branches(tree: Tree, spoil: bool) -> Branches:
    """Draw the graph as branches: a subtopic hangs under its deepest prerequisite and names the others."""
    depth = depths(tree)
    root = Branches(Text(f"{tree.id} · {tree.paper.title}", style="bold"))
    root.add(Text(tree.topic, style="italic"))
    places: dict[str, Branches] = {}
    for subtopic in (subtopic for row in layers(tree) for subtopic in row):
        needs = sorted(subtopic.prerequisites, key=lambda name: (-depth[name], name))
        also = f"  (also needs {', '.join(needs[1:])})" if needs[1:] else ""
        label = Text.assemble((f"{subtopic.id} · {subtopic.name}", "bold cyan"), (also, "dim"), f"\n{subtopic.text}")
        place = places[subtopic.id] = (places[needs[0]] if needs else root).add(label)
        for study in subtopic.studies:
            place.add(Text(f"{study.id}  {study.text}" + (f"\n→ {study.result}" if spoil else ""), style="dim"))
    if spoil:
        ending = root.add(Text("Conclusions", style="bold"))
        for item in tree.conclusions:
            ending.add(Text(f"{item.id}  {item.text}"))
    return root


def _ask(observation: str, info: Mapping[str, Any]) -> str:
    to_terminal(f"turn {info['turn'] + 1} · {info['state']}\n\n{observation}")
    lines: list[str] = []
    while True:
        line = out.input("> " if not lines else "… ")
        if not line.strip() and lines:
            return "\n".join(lines)
        if line.strip():
            lines.append(line)


def _read(folder: Path) -> tuple[list[Any], list[str]]:
    from inquitree_gym.experiments.runner import read_manifest

    study: Study = read_manifest(folder)
    with _progress("scoring", len(list(study.cells()))) as advance:
        return read_scores(folder, lambda cell: advance(cell.tree))


def _tell_missing(missing: list[str]) -> None:
    if missing:
        err.print(
            f"{len(missing)} episodes are missing or torn and were not scored; run the study again to finish them"
        )


def _as_table(title: str, lines: Iterable[list[str]]) -> Table:
    heading, *body = lines
    table = Table(*heading, title=title)
    for line in body:
        table.add_row(*line)
    return table


def _print_json(value: Any) -> None:
    out.print(json.dumps(value, indent=2, ensure_ascii=False), markup=False, highlight=False, soft_wrap=True)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error
    err.print(f"written: {file}")


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _split(text))
    except ValueError as error:
        raise InquiTreeError(f"--fake-level takes whole numbers, comma-separated, not '{text}'") from error


def _turns(text: str) -> int | str | None:
    if text == "none":
        return None
    return int(text) if text.isdigit() else text


@contextmanager
def _progress(verb: str, total: int) -> Any:
    """Yield a function that advances a bar on the error stream by one, naming what was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(verb, total=total)
        yield lambda what: bars.update(task, advance=1, description=f"{verb} {what}")
