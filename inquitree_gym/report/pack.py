"""Archive of a run for others: its folder, a table of its episodes for `datasets`, and a card for dataset hubs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inquitree_gym._litellm import scrub_file
from inquitree_gym.analysis.aggregate import MEASURES, summarise
from inquitree_gym.analysis.load import ScoredEpisode, ScoredRun, score_logs
from inquitree_gym.analysis.logs import find_logs
from inquitree_gym.analysis.recorded import CURRENT
from inquitree_gym.errors import LogError, OptionError, PackError
from inquitree_gym.judges.records import JUDGEMENTS
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.log import has_header, read_episode
from inquitree_gym.report.tables import escaped, make_table, markdown
from inquitree_gym.runner.archive import PackManifest, write_archive
from inquitree_gym.runner.environment_kinds import INQUIRIES
from inquitree_gym.runner.folder import EPISODES, MANIFEST, RunManifest, load_manifest, log_file
from inquitree_gym.runner.growth import renamed, task_refs
from inquitree_gym.runner.specs import tree_name
from inquitree_gym.runner.templates import PROMPTS
from inquitree_gym.runner.trees import run_task, version_name
from inquitree_gym.trees import Tree, dump_tree
from inquitree_gym.trees.fields import CANARY

CARD = "README.md"
ROWS = "data/episodes.jsonl"
"""Table of the scored episodes, one JSON line each."""
DEFAULT_LICENCE = "apache-2.0"
SHOWN = ("coverage", "Q/|C|", "turns L", "hits", "false alarms")
"""Measures in the table of the card."""
_COLUMNS = {"Q": "quality", "Q/|C|": "quality_share", "turns L": "turns"}
_TOLERANCE = 1e-6
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True, slots=True)
class PackSummary:
    """Outcome of packing a run."""

    manifest: PackManifest
    episodes: int
    """Rows of the table."""
    unscored: tuple[str, ...]
    """Logs without a row: torn, damaged or missing ones. Those that can be read are in the archive."""
    scrubbed: tuple[str, ...]
    """Files from which a secret was removed."""


def pack_run(folder: Path, file: Path, judge: str = LOCAL, licence: str = DEFAULT_LICENCE) -> PackSummary:
    """Write a run folder as one archive; the same run gives the same bytes.

    Args:
        folder: of the run.
        file: the archive, which must not exist.
        judge: name or label of the judge of the scores in the table.
        licence: licence in the card, as dataset hubs name it.

    Raises:
        LogError: the folder is no run, or one of its trees is not at hand.
        JudgeError: the judge has not judged the run.
        OptionError: the judge is unknown, or the licence is not written as hubs do.
        PackError: the archive exists or cannot be written.
    """
    if not _LICENCE.fullmatch(licence):
        raise OptionError(f"a licence is written as dataset hubs do, such as apache-2.0, not '{licence:.80}'")
    manifest = load_manifest(folder)
    if manifest.study.env != "inquiry":
        raise OptionError(f"'{folder}' is a run of {manifest.study.env}s; inquitree pack takes runs of inquiries")
    names = {name: tree_name(name) for name in manifest.study.trees}
    trees = {names[name]: run_task(INQUIRIES, folder, manifest, name) for name in names}
    refs = task_refs(INQUIRIES, trees)
    manifest = manifest.model_copy(update={"study": renamed(manifest.study, names), "trees": refs})
    run = score_logs(find_logs(folder), judge=judge)
    scrubbed: list[str] = []

    def contents() -> Iterator[tuple[str, bytes]]:
        for name, text in _texts(folder, manifest, trees, run, licence):
            clean = scrub_file(text)
            if clean != text:
                scrubbed.append(name)
            yield name, clean.encode()

    packed = write_archive(file, contents())
    return PackSummary(packed, len(run.episodes), tuple(each.name for each in run.missing), tuple(scrubbed))


def check_rows(folder: Path) -> list[str]:
    """Score an unpacked run again, and return the differences to the scores in its table, in words.

    Raises:
        PackError: there is no readable table, or another release judged it.
        LogError: the folder is no run.
    """
    file = folder / ROWS
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        packed = {row["key"]: row for row in rows}
        judges = sorted({row["judged_by"] for row in rows})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PackError(f"cannot read '{file}': {error}") from error
    judge = judges[0] if judges else CURRENT
    if len(judges) > 1 or (judge.startswith(LOCAL) and judge != CURRENT):
        raise PackError(f"the scores were judged by {', '.join(judges)}, and this release judges by {CURRENT}")
    again = {row["key"]: row for row in map(_row, score_logs(find_logs(folder), judge=judge).episodes)}
    differing = [f"{key} is scored in one of the two only" for key in sorted(packed.keys() ^ again.keys())]
    for key in packed.keys() & again.keys():
        columns = [name for name, value in again[key].items() if not _same(packed[key].get(name), value)]
        differing += [f"{key}: {name} was {packed[key].get(name)}, now {again[key][name]}" for name in columns]
    return sorted(differing)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=_TOLERANCE)
    return bool(one == other)


def _texts(
    folder: Path, manifest: RunManifest, trees: Mapping[str, Tree], run: ScoredRun, licence: str
) -> Iterator[tuple[str, str]]:
    """Yield the files of an archive by path, in a fixed order; logs that cannot be read are left out."""
    yield CARD, card(manifest, trees, run, licence)
    yield ROWS, "".join(f"{json.dumps(row)}\n" for row in map(_row, run.episodes))
    for spec in manifest.study.specs():
        file = log_file(folder, spec)
        if has_header(file) and _is_readable(file):
            yield f"{EPISODES}/{file.name}", file.read_text(encoding="utf-8")
    for file in sorted((folder / JUDGEMENTS).glob("*.jsonl")):
        yield f"{JUDGEMENTS}/{file.name}", file.read_text(encoding="utf-8")
    for file in sorted((folder / PROMPTS).glob("*/*.md")):
        yield file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")
    yield MANIFEST, json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n"
    for tree in {tree.digest: tree for tree in trees.values()}.values():
        yield f"{INQUIRIES.copies}/{version_name(tree.id, tree.digest)}.json", dump_tree(tree)


def _is_readable(file: Path) -> bool:
    try:
        read_episode(file)
    except LogError:
        return False
    return True


def _row(episode: ScoredEpisode) -> dict[str, Any]:
    """Return one row of the table: flat, with the same columns for every episode."""
    score = episode.score
    assert episode.file is not None
    log = read_episode(episode.file)
    values = {_column(heading): measure(score) for heading, measure in MEASURES.items()}
    return {
        "key": episode.file.stem,
        "tree": score.tree,
        "tree_digest": log.header.task.digest,
        "agent": score.agent,
        "model": score.model,
        "fake_level": score.fake_level,
        "seed": score.seed,
        "limit": score.limit,
        "reading": score.reading,
        "judged_by": score.judged_by,
        **{name: None if value is None else float(value) for name, value in values.items()},
        "replies": episode.cost.replies,
        "dollars": episode.cost.dollars,
        "fingerprint": log.fingerprint,
        "canary": CANARY,
    }


def _column(heading: str) -> str:
    return _COLUMNS.get(heading) or re.sub(r"\W+", "_", heading.lower())


def card(manifest: RunManifest, trees: Mapping[str, Tree], run: ScoredRun, licence: str) -> str:
    """Return the card of an archive: Markdown under a YAML header, as dataset hubs read it."""
    means = [
        (each.agent, each.fake_level, each.episodes, *(each.estimates[name] for name in SHOWN))
        for each in summarise(run.scores)
    ]
    judges = ", ".join(dict.fromkeys(score.judged_by for score in run.scores)) or CURRENT
    study = manifest.study
    facts = {
        "agents": ", ".join(dict.fromkeys(spec.player for spec in study.specs())),
        "trees": ", ".join(f"{name} (`{tree.digest[:12]}`)" for name, tree in trees.items()),
        "fake levels": ", ".join(map(str, study.fake_levels)),
        "turn limit": study.limit,
        "embedder": study.embedder,
        "judge": judges,
        **{f"version of {name}": str(value) for name, value in manifest.versions.items()},
    }
    return _CARD.format(
        licence=licence,
        size=_size_category(len(run.episodes)),
        episodes=len(run.episodes),
        facts="\n".join(f"- {name}: {_plain(value)}" for name, value in facts.items()),
        means=markdown(make_table("Means", ("agent", "fake level", "episodes", *SHOWN), means)),
        rows=ROWS,
        canary=CANARY,
    )


def _plain(value: str) -> str:
    """Return a value as Markdown in which only the code marks of digests are markup."""
    return escaped(value).replace("\\`", "`")


def _size_category(rows: int) -> str:
    """Return the range of a number of rows as dataset hubs name it."""
    names: Sequence[tuple[int, str]] = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    return next((name for limit, name in names if rows < limit), "100K<n<1M")


_CARD = """---
license: {licence}
language:
- en
pretty_name: Episodes of an InquiTree run
tags:
- inquitree
- agents
- scientific-discovery
- benchmark
size_categories:
- {size}
configs:
- config_name: episodes
  data_files: {rows}
---

# Episodes of an InquiTree run

{episodes} scored episodes in which agents re-live the inquiries behind published papers, played with inquitree-gym.

{facts}

## Means

Means over trees, with a 95 % interval from five trees on.

{means}

## Content

- `{rows}`: one row per scored episode, `datasets.load_dataset(FOLDER, "episodes")`.
- `episodes/`: the log of every episode, turn by turn; `trees/`: the research trees that were played; `run.json`: the
  settings. Where there are any, `judgements/`: the verdicts of further judges; `prompts/`: templates that
  inquitree-gym does not ship.
- `manifest.json`: size and SHA-256 of every file.

`inquitree report FOLDER` computes the means again, `inquitree view FOLDER` shows the episodes, and
`inquitree unpack FILE --check` checks the archive.

The texts are benchmark data and do not belong in training corpora. They hold this string, by which they can be found:

    {canary}
"""
