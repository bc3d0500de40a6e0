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

from inquitree_gym.analysis.aggregate import CHANGE, NORMALISED, SettingSummary, compare, summarise
from inquitree_gym.analysis.load import ScoredRun, load_run
from inquitree_gym.report import figures
from inquitree_gym.report.tables import Table, make_table, markdown
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.scoring import EpisodeScore
from inquitree_gym.scoring.vigilance import D_PRIME, FALSE_ALARMS, HITS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = "reference-runs.md"
STUDIES = {"reference": "default", "reference-3n": "3n"}
"""Name of each study, and its turn limit."""
LIMITS = {"default": "At the default limit, n(2H + 3) turns", "3n": "At 3n turns"}
RESULTS = ("coverage", "unaided", "Q/|C|", NORMALISED, "turns L", "hints")
VIGILANCE = ("redo", CHANGE, HITS, FALSE_ALARMS, D_PRIME)
WORTH = ("coverage", "unaided", "Q/|C|", "turns L")
REDOING = ("random", "retrieval")
"""Agents that are compared with and without `RedoUntilTrue`."""
HEAD = """# Reference runs

What agents without a language model reach on the shipped trees: the floor, the ends of the scale, and what redoing is
worth. Any other agent can be set beside them. Everything here is written by
[a script](../scripts/reference_runs.py) from the logs of two studies,
[reference.toml](../studies/reference.toml) and [reference-3n.toml](../studies/reference-3n.toml):

```sh
inquitree run --study studies/reference.toml --out runs/reference
inquitree run --study studies/reference-3n.toml --out runs/reference-3n
python scripts/reference_runs.py runs/reference runs/reference-3n
```

`inquitree report runs/reference runs/reference-3n --out runs/reference.html` shows the same and more as a page, and
`inquitree report RUN runs/reference` puts a run of yours beside it.
"""
AGENTS = """| agent | plays |
| --- | --- |
| `random` | subtopics not yet entered and studies by chance, in the tree's own words; concludes with menu texts |
| `random-menu` | anything on the menu at every decision: the floor |
| `random-words` | random words of everyday science at every turn |
| `retrieval` | the menu text nearest to what it reads; concludes with the results that it was shown |
| `random-redo`, `retrieval-redo` | the same, but they [redo until the result is true](vigilance.md#redo-until-true) |
| `worst-case` | nothing, so that hints and forced moves carry it through |
| `oracle` | perfectly; redoes a fake while the turns left allow a full traversal |
"""
TELL = """The columns are those of a [report](scoring.md): means over trees with the 95 % interval of a t over tree
means. The seeds of the episodes are 0 to {last}. Read by {reading}, judged by the local judge.
"""
NOTES = """- Coverage alone says little at the default limit: hints carry an agent that says nothing (`worst-case`)
  through every tree. Unaided coverage, and the limit of 3n turns, tell agents apart.
- `worst-case` has no unaided coverage. `random-words` has some: now and then random words come nearer to a subtopic
  than τ, which says how far unaided coverage may stand above 0 by chance.
- Without redoing, fakes change nothing in how an agent moves, only what it may conclude from: the rows of `random`,
  `random-menu`, `random-words` and `worst-case` repeat over levels but for hits and false alarms.
- With 3n turns a full traversal takes every turn, so the oracle, which traverses first, redoes nothing there.
- The agents that redo until the result is true are perfect at it by construction; their d′ shows how high the
  correction lets d′ come with so many trials.
"""
REDO = """## What redoing is worth

The agent that redoes until the result is true minus the same agent without redoing, paired by tree and seed. At the
default limit redoing costs turns that are there; at 3n every redo is taken from the traversal.
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
    """Return the page and its figures by path within docs; ``runs`` are in the order of `STUDIES`."""
    for run, limit in zip(runs, STUDIES.values(), strict=True):
        if run.missing:
            sys.exit(f"{run.folder} lacks {len(run.missing)} episodes; run its study again to finish")
        if read_manifest(run.folder).max_turns != limit:
            sys.exit(f"{run.folder} was not run with the limit '{limit}'")
    tables = {limit: summarise(run.scores) for run, limit in zip(runs, STUDIES.values(), strict=True)}
    scores = runs[0].scores
    tell = TELL.format(last=max(score.seed for score in scores), reading=scores[0].reading)
    parts = [HEAD, AGENTS, tell, "## In short\n", NOTES]
    for name, limit in STUDIES.items():
        parts += [f"## {LIMITS[limit]}\n", f"![Q/|C| over fake levels](figures/{name}.svg)\n"]
        parts += [_captioned(each) for each in _tables(tables[limit])]
    parts += [REDO, *(_captioned(_worth(run, limit)) for run, limit in zip(runs, STUDIES.values(), strict=True))]
    return {PAGE: "\n".join(parts)} | {f"figures/{name}.svg": _figure(tables[STUDIES[name]]) for name in STUDIES}


def _tables(table: Sequence[SettingSummary]) -> Iterator[Table]:
    for caption, measures in (("Results", RESULTS), ("Vigilance", VIGILANCE)):
        lines = [
            [f"`{row.agent}`", row.fake_level, f"{row.episodes} ({row.trees})", *map(row.estimates.get, measures)]
            for row in table
        ]
        yield make_table(caption, ["agent", "fakes", "n (trees)", *measures], lines)


def _worth(run: ScoredRun, limit: str) -> Table:
    lines = []
    for agent in REDOING:
        without, redoing = (_of(run.scores, name) for name in (agent, f"{agent}-redo"))
        lines += [
            [f"`{agent}`", each.fake_level, each.pairs, *map(each.estimates.get, WORTH)]
            for each in compare(without, redoing)
        ]
    return make_table(LIMITS[limit], ["agent", "fakes", "pairs", *WORTH], lines)


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
        agent: [(float(row.fake_level), row.estimates["Q/|C|"]) for row in group] for agent, group in found.items()
    }
    return figures.curves("reference", ("fake level", "conclusion Q/|C|"), curves, levels=True).document()


if __name__ == "__main__":
    main()
