"""Rewrite docs/reference-runs.md and its figures from the runs of studies/reference.toml and studies/reference-3n.toml.

    inquitree run --study studies/reference.toml --out runs/reference
    inquitree run --study studies/reference-3n.toml --out runs/reference-3n
    python scripts/reference_runs.py runs/reference runs/reference-3n

The figures need the extra ``plots``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from inquitree_gym.inquiry.results import CHANGE, LEVEL, OF_ORACLE, EpisodeScore
from inquitree_gym.inquiry.vigilance import D_PRIME, FALSE_ALARMS, HITS
from inquitree_gym.results import figures
from inquitree_gym.results.comparison import compare
from inquitree_gym.results.load import ScoredRun, load_run
from inquitree_gym.results.summary import SettingSummary, axis_name, summarise
from inquitree_gym.results.tables import Table, cell, make_table, markdown
from inquitree_gym.runs.folder import load_manifest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = "reference-runs.md"
STUDIES = {"reference": "11n", "reference-3n": "3n"}
"""Name of each study, and its turn limit."""
LIMITS = {"11n": "At n(2H + 3) turns", "3n": "At 3n turns"}
RESULTS = ("return", OF_ORACLE, "right", "credit", "coverage", "unaided_coverage", "turns")
VIGILANCE = ("redo_rate", CHANGE, HITS, FALSE_ALARMS, D_PRIME)
WORTH = ("coverage", "unaided_coverage", "return", "turns")
REDOING = ("random", "retrieval")
"""Agents that are compared with and without `RedoUntilTrue`."""
HEAD = """# Reference runs

Compare your agent with agents that use no language model: the floor, the two ends of the scale, and the value of
redoing. All numbers are from the shipped trees. [A script](../scripts/reference_runs.py) writes this page from the logs
of two studies, [reference.toml](../studies/reference.toml) and [reference-3n.toml](../studies/reference-3n.toml):

```sh
inquitree run --study studies/reference.toml --out runs/reference
inquitree run --study studies/reference-3n.toml --out runs/reference-3n
python scripts/reference_runs.py runs/reference runs/reference-3n
```

`inquitree report runs/reference runs/reference-3n --out runs/reference.html` shows the same results and more as a page.
`inquitree report RUN runs/reference` shows your own run beside them.
"""
AGENTS = """| agent | behaviour |
| --- | --- |
| `random` | draws from subtopics not yet entered and studies, in the tree's own words; guesses in the exam |
| `random-menu` | draws a subtopic or a study at every turn, at a result also a decision; guesses in the exam |
| `random-words` | says random words of everyday science at every turn |
| `retrieval` | says the menu text nearest to the observation; answers with the options nearest to the results shown |
| `random-redo`, `retrieval-redo` | the same, but [redo until the result is true](vigilance.md#redo-until-true) |
| `worst-case` | says nothing, so hints and forced moves carry it through the tree |
| `copyist` | says "x" at every choice; answers with the majority of the results shown |
| `echo` | repeats the last hint; answers with the majority of the results shown |
| `cover` | enters a random open subtopic and runs a random study; answers by the exact posterior over worlds |
| `greedy` | enters and runs what tells most per turn, nothing twice; answers by the exact posterior |
| `bayes` | as `greedy`, and repeats what helps most while turns remain: the ceiling of reasoning from results |
| `oracle` | plays perfectly; redoes a fake while the turns left allow a full traversal |
"""
TELL = """The columns are those of a [report](scoring.md): means over trees, each with the 95 % t interval over tree
means. The seeds are 0 to {last}. Actions are read by {reading}.
"""
NOTES = """- At n(2H + 3) turns, coverage alone says little: hints carry an agent that says nothing (`worst-case`)
  through every tree. Unaided coverage and the limit of 3n turns separate the agents.
- `worst-case` has no unaided coverage, and `random-words` has next to none: random words seldom reach the threshold τ
  for a subtopic that is open.
- An agent that does not react to results moves in the same way with and without fakes; only the results that it can
  conclude from differ. `random`, `random-menu`, `random-words` and `worst-case` therefore have one row of results for
  all fake levels.
- With 3n turns, a full traversal takes every turn. The oracle puts the traversal first, so it redoes nothing there.
- The agents that redo until the result is true have perfect hits and false alarms by construction. Their d′ shows the
  highest d′ that the correction allows with this number of trials.
"""
REDO = """## What redoing is worth

Each row is the agent that redoes until the result is true minus the same agent without redoing, paired by tree and
seed. At n(2H + 3) turns, redoing can use spare turns. At 3n, every redo takes a turn from the traversal.
"""


def main() -> None:
    """Write the page and its figures."""
    if len(sys.argv) != 1 + len(STUDIES):
        sys.exit(f"usage: python scripts/reference_runs.py {' '.join(f'RUN-OF-{name}' for name in STUDIES)}")
    for name, text in pages([load_run(folder) for folder in sys.argv[1:]]).items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def pages(runs: Sequence[ScoredRun]) -> dict[str, str]:
    """Return the page and its figures by path within docs. ``runs`` are in the order of `STUDIES`."""
    for run, limit in zip(runs, STUDIES.values(), strict=True):
        if run.missing:
            sys.exit(f"{run.folder} lacks {len(run.missing)} episodes; run its study again to finish")
        if load_manifest(run.folder).limit != limit:
            sys.exit(f"{run.folder} was not run with the limit '{limit}'")
    tables = {limit: summarise(run.scores) for run, limit in zip(runs, STUDIES.values(), strict=True)}
    scores = runs[0].scores
    tell = TELL.format(last=max(score.seed for score in scores), reading=scores[0].rules)
    parts = [HEAD, AGENTS, tell, "## In short\n", NOTES]
    for name, limit in STUDIES.items():
        parts += [f"## {LIMITS[limit]}\n", f"![Return over fake levels](figures/{name}.svg)\n"]
        parts += [_captioned(each) for each in _tables(tables[limit])]
    parts += [REDO, *(_captioned(_worth(run, limit)) for run, limit in zip(runs, STUDIES.values(), strict=True))]
    return {PAGE: "\n".join(parts)} | {f"figures/{name}.svg": _figure(tables[STUDIES[name]]) for name in STUDIES}


def _tables(table: Sequence[SettingSummary]) -> Iterator[Table]:
    """Yield the tables of a study. Levels at which the row of an agent is the same share a line."""
    for caption, measures in (("Results", RESULTS), ("Vigilance", VIGILANCE)):
        levels: dict[tuple[object, ...], list[str]] = {}
        for row in table:
            place = (row.agent, row.episodes, row.tasks, *(cell(row.estimates.get(name)) for name in measures))
            levels.setdefault(place, []).append(str(row.cell[LEVEL]))
        lines = [
            [f"`{agent}`", ", ".join(same), f"{episodes} ({tasks})", *cells]
            for (agent, episodes, tasks, *cells), same in levels.items()
        ]
        yield make_table(caption, ["agent", "fakes", "n (trees)", *map(axis_name, measures)], lines)


def _worth(run: ScoredRun, limit: str) -> Table:
    lines = []
    for agent in REDOING:
        without, redoing = (_of(run.scores, name) for name in (agent, f"{agent}-redo"))
        lines += [
            [f"`{agent}`", each.cell[LEVEL], each.pairs, *map(each.estimates.get, WORTH)]
            for each in compare(without, redoing)
        ]
    return make_table(LIMITS[limit], ["agent", "fakes", "pairs", *map(axis_name, WORTH)], lines)


def _of(scores: Sequence[EpisodeScore], agent: str) -> list[EpisodeScore]:
    return [score for score in scores if score.agent == agent]


def _captioned(table: Table) -> str:
    # Backslashes keep a log's words from being markup; the agents here are the project's own, and set as code.
    return f"**{table.caption}**\n\n{markdown(table)}\n".replace("\\`", "`")


def _figure(table: Sequence[SettingSummary]) -> str:
    found: dict[str, list[SettingSummary]] = {}
    for row in table:
        found.setdefault(row.agent, []).append(row)
    curves = {
        agent: [(float(row.cell[LEVEL]), row.estimates["return"]) for row in group] for agent, group in found.items()
    }
    return figures.levels("reference", ("fake level", "return"), curves).document()


if __name__ == "__main__":
    main()
