"""Record what the package means, so that a rebuild can show that nothing changed.

``python scripts/fingerprints.py`` writes ``tests/data/fingerprints.json``: one short value per case, such as the digest
of all observations, actions and rewards of an episode. ``--check`` computes the cases again, lists every one that
differs, and exits with status 1 if there is any. ``--fast`` takes a small part of the cases, and ``--only play,help``
takes some of the sections.

The values come from what users see: environments by id, `play`, the command line and its JSON. They leave out times,
paths, digests of files and the format of logs. Arrays with vectors differ in the last digit from machine to machine:
compare two commits on one machine, or pass ``--ignore "arrays: inquiry*"``. Where an object moves, adjust the block of
imports. Where a field of an event is renamed, `event_fields` in `fingerprint_values.py`.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

os.environ |= {"COLUMNS": "118", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "loopback", "TERM": "dumb"}

import gymnasium as gym
import numpy as np
from fingerprint_service import LoopbackModel
from fingerprint_values import Cases, columns, digest, note_arrays, parameters, sent, summary, tables

import inquitree_gym

# Imports of the package that a move may change.
from inquitree_gym.cli import main as command_line
from inquitree_gym.trees import WorldSettings, builtin_ids, load_tree, synthetic_task, synthetic_tree
from inquitree_gym.trees.catalogue import WITHHELD_ENTRY_POINT

FILE = Path(__file__).parent.parent / "tests" / "data" / "fingerprints.json"
PUBLIC = ("inquitree_gym", "inquitree_gym.envs", "inquitree_gym.wrappers", "inquitree_gym.baselines")
"""Packages whose names are public."""
SMALL_TREES = ("paper2", "paper12", "paper24")
"""Trees and tasks of ``--fast``."""
INQUIRIES: dict[str, dict[str, Any]] = {
    "oracle": {},
    "random-menu": {"fake_level": 5, "max_turns": 40},
    "random-redo": {"fake_level": 8, "max_turns": 30, "rules": "paper"},
    "retrieval": {"fake_level": 3, "max_turns": 25},
}
"""Agents that play every tree, and the rules that they play by."""
RULES: dict[str, dict[str, Any]] = {
    "strict": {"fake_level": 10, "max_turns": 20, "decisions": "tokens", "bare_decisions": False},
    "turns": {"fake_level": 7, "max_turns": 30, "redo_turn": True, "named_at_result": "any", "threshold": 0.4},
}
"""Further rules, which agents play on the trees of `SMALL_TREES`."""
PROJECTORS = (
    ("oracle", 0), ("coin", 0), ("coin", 1), ("coin", 2), ("null", 0), ("reversed", 0), ("other-paper", 0),
    ("retrieval", 0),
)  # fmt: skip
"""Agents that play every projection task, with their seeds."""
ORDERS = {"plain": ("question", "null", "procedure"), "swapped": ("procedure", "question", "null")}
MODES = ("NextStep", "SameStep", "Disabled")
RUNS = {
    "small": ("2", "oracle,random-menu", "oracle,coin", "0,3", 1),
    "large": ("2,12,24", "oracle,random-menu,random-redo,retrieval", "oracle,coin,null,other-paper", "0,3,6", 2),
}
"""Papers, agents of each kind, fake levels and the number of seeds of the runs whose results count."""
DIFFICULTIES: dict[str, dict[str, Any]] = {
    "default": {},
    "layered": {"subtopics": (3, 12), "topology": "layered", "density": 0.7, "nearness": 0.5, "studies": (1, 3)},
    "chain": {"subtopics": 5, "topology": "chain", "poles": 3, "null_share": 0.1, "noise": 0.3, "shuffled": True},
}


class Work:
    """What the sections share: the size, a folder for files, and a model on loopback."""

    def __init__(self, folder: Path, fast: bool) -> None:
        """Take the size. The trees are all shipped ones unless ``fast``."""
        self.folder, self.fast = folder, fast
        self.trees = SMALL_TREES if fast else tuple(builtin_ids())
        tree = load_tree("paper2")
        self.model = LoopbackModel([node.text for node in (*tree.subtopics, *tree.studies)])

    def inquitree(self, *arguments: object) -> str:
        """Run the command line in this process, and return its output. Raises `RuntimeError` if it fails."""
        out, err = io.StringIO(), io.StringIO()
        sys.argv = ["inquitree", *map(str, arguments)]
        status: Any = 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                command_line()
            except SystemExit as left:
                status = left.code
        if status:
            raise RuntimeError(f"{' '.join(sys.argv)} ended with status {status}: {err.getvalue()}")
        return out.getvalue()


# Play


def play(work: Work) -> Cases:
    """Yield every observation, action, reward and event of inquiries and projections."""
    for tree, agent in product(work.trees, INQUIRIES):
        seed = builtin_ids().index(tree)
        yield f"{tree} {agent}", told(f"InquiTree-{tree}-v0", agent, seed, INQUIRIES[agent])
    for tree, (name, rules), agent in product(SMALL_TREES, RULES.items(), ("random-menu", "random", "worst-case")):
        yield f"{tree} {agent} {name}", told(f"InquiTree-{tree}-v0", agent, 7, rules)
    forms = (("sentence", "plain"), ("claims", "swapped")) if work.fast else product(("sentence", "claims"), ORDERS)
    for tree, (form, order), (agent, seed) in product(work.trees, forms, PROJECTORS):
        rules = {"form": form, "levels": ORDERS[order], "reward": "sheet" if order == "plain" else "none"}
        name = f"projection {tree} {agent} {seed} {form} {order}"
        yield name, told(f"ProjectionBench-{tree}-v0", agent, seed, rules)


def told(env_id: str, agent: str, seed: int, rules: dict[str, Any]) -> str:
    """Return turns, return and digest of an episode."""
    env = gym.make(env_id, disable_env_checker=True, privileged=True, **rules)
    return summary(inquitree_gym.play(env, inquitree_gym.make_agent(agent, env), seed))


# Arrays


def arrays(work: Work) -> Cases:
    """Yield masked random steps of many environments, and of single ones, in the discrete views."""
    inquiry = {"tree": ["paper2", "paper12"], "fake_level": 3}
    views: dict[str, tuple[str, dict[str, Any]]] = {
        "inquiry": ("InquiTree-menu-v0", inquiry),
        "inquiry index": ("InquiTree-menu-v0", inquiry | {"observation": "index", "reruns": "match"}),
        "worlds": ("ProjectionBench-synthetic-menu-v0", {"claims": (2, 6), "deducible": 0.5}),
    }
    for (name, (env_id, keywords)), mode in product(views.items(), MODES[:1] if work.fast else MODES):
        yield f"{name} {mode}", stepped(gym.make_vec(env_id, 64, autoreset_mode=mode, **keywords), 300)
    for name in ("inquiry", "worlds"):
        env_id, keywords = views[name]
        batch = stepped(gym.make_vec(env_id, 4, **keywords), 60, infos=False)
        singles = stepped(gym.make_vec(env_id, 4, "sync", **keywords), 60, infos=False)
        yield f"{name} singles", f"{'as' if batch == singles else 'UNLIKE'} arrays, {singles}"
    yield "inquiry texts", spoken(gym.make_vec("InquiTree-paper12-v0", 4, fake_level=5, max_turns=20), 60)
    if not work.fast:  # every episode has a new tree, whose texts are embedded
        rules = {"difficulty": {"subtopics": 2, "studies": 1}, "fake_level": 5, "max_turns": 8}
        yield "inquiry synthetic", stepped(gym.make_vec("InquiTree-synthetic-menu-v0", 1, "sync", **rules), 20)


def stepped(env: gym.vector.VectorEnv, steps: int, infos: bool = True) -> str:
    """Return the sum of rewards and the digest of masked random steps."""
    rng, found, earned = np.random.default_rng(0), hashlib.sha256(), 0.0
    observation, info = env.reset(seed=0)
    for _ in range(steps):
        note_arrays(found, observation, info if infos else {})
        mask = env.action_masks() if hasattr(env, "action_masks") else info["action_mask"]
        shape = env.action_space.shape
        mask = np.asarray(mask).reshape(*shape, -1)
        observation, reward, terminated, truncated, info = env.step((rng.random(mask.shape) * mask).argmax(axis=-1))
        note_arrays(found, reward, {"terminated": terminated, "truncated": truncated})
        earned += float(reward.sum())
        over = terminated | truncated
        if env.metadata["autoreset_mode"].value == "Disabled" and over.any():
            observation, info = env.reset(options={"reset_mask": over})
    env.close()
    return f"{earned:.4f}, {found.hexdigest()[:12]}"


def spoken(env: gym.vector.VectorEnv, steps: int) -> str:
    """Return the digest of random proposals, in the words of the tree, to environments of the text view."""
    tree, rng = load_tree("paper12"), np.random.default_rng(0)
    texts = [node.text for node in (*tree.subtopics, *tree.studies)] + ["redo_study", "explore_new_subtopic"] * 3
    first = env.reset(seed=0)
    said = rng.choice(texts, size=(steps, env.num_envs)).tolist()
    steps_taken = [env.step(actions) for actions in said]
    env.close()
    return digest([first, steps_taken])


# Requests


def requests(work: Work) -> Cases:
    """Yield the requests that agents, readers, judges and the control measurements send to a service."""
    model = ("--model", "openai/m", "--base-url", work.model.address)
    one = ("--papers", "2", "--seeds", 1, "--max-concurrency", 1)
    inquiry, projection = ("run", *one, "--max-turns", 12), ("run", "--env", "projection", *one)
    reader = ("--reader", "llm:openai/m", "--reader-base-url", work.model.address)
    judge = ("--judge", "llm:openai/m", "--judge-base-url", work.model.address)
    paper = work.folder / "bread.txt"
    paper.write_text("We added yeast to dough and measured its height.", encoding="utf-8")
    kept, baselines = work.folder / "kept", ("--agent", "random-menu", "--out", work.folder / "random")
    commands: dict[str, tuple[object, ...]] = {
        "llm": (*inquiry, "--agent", "llm", *model, "--fake-level", 5),
        "llm paper": (*inquiry, "--agent", "llm", *model, "--fake-level", 5, "--rules", "paper"),
        "llm belief, short context": (
            *inquiry, "--agent", "llm", *model, "--fake-level", 5, "--belief", "--context", 1500, "--temperature", 0.5,
        ),
        "sceptic": (*inquiry, "--agent", "sceptic", *model, "--fake-level", 5),
        "reader": (*inquiry, *baselines, *reader),
        "judge of an inquiry": (*inquiry, "--agent", "oracle", *judge),
        "projecting": (*projection, "--agent", "llm", *model),
        "projecting in a conversation": (
            *projection, "--agent", "llm", *model, "--memory", "conversation", "--reply", "thought",
        ),
        "judge of projections": (*projection, "--agent", "coin", *judge),
        "verb judge": ("judge", work.folder / "random", "--judge", "llm:openai/m", *model[2:], "--max-concurrency", 1),
        "verb judge as in the paper": (
            "judge", work.folder / "random", "--judge", "llm-paper:openai/m", *model[2:], "--max-concurrency", 1,
        ),
        "probe": ("probe", *model, "--papers", "2", "--out", kept / "probe"),
        "recall": (*inquiry, "--agent", "recall", *model),
        "disclose": ("disclose", paper, *model, "--published", "2026-05", "--out", kept / "bread.json"),
    }  # fmt: skip
    kept.mkdir()
    with replies_in(work.folder / "replies"):
        for number, (name, arguments) in enumerate(commands.items()):
            has_folder = arguments[0] != "run" or "--out" in arguments
            work.inquitree(*arguments, *(() if has_folder else ("--out", work.folder / f"asked{number}")))
            yield from sent(name, work.model.take())


@contextmanager
def replies_in(folder: Path) -> Iterator[None]:
    """Keep cached replies in a new folder, so that every request is sent. Vectors keep their folder."""
    named = os.environ.get("INQUITREE_CACHE")
    os.environ["INQUITREE_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["INQUITREE_CACHE"]
        if named is not None:
            os.environ["INQUITREE_CACHE"] = named


# Results


def results(work: Work) -> Cases:
    """Yield what the command line makes of runs: JSON by key, and CSV files by column."""
    for size, (papers, agents, projectors, levels, seeds) in list(RUNS.items())[: 1 if work.fast else 2]:
        common = ("--papers", papers, "--seeds", seeds, "--out")
        for kind, players, more in (("inquiry", agents, ("--fake-level", levels)), ("projection", projectors, ())):
            folder = work.folder / f"{size} {kind}"
            played = work.inquitree("run", "--env", kind, "--agent", players, *more, *common, folder, "--json")
            yield from columns(f"{size} {kind} run", json.loads(played))
            yield from results_of(f"{size} {kind}", folder, work)
    measured = work.inquitree("bounds", "2", "--topology", "chain,dag", "--n", 4, "--episodes", 100, "--json")
    yield from columns("bounds", json.loads(measured))
    for target in () if work.fast else ("table2", "fig3", "fig4", "table3", "bounds"):
        agents = () if target in ("table3", "bounds") else ("--agent", "random,oracle", "--seeds", 1)
        folder = work.folder / "reproduction" / target
        work.inquitree("reproduce", target, "--papers", "2,17", *agents, "--out", folder)
        yield from tables(f"reproduce {target}", folder)


def results_of(name: str, folder: Path, work: Work) -> Cases:
    """Yield the results of one run by each verb."""
    for verb in ("score", "report"):
        found = json.loads(work.inquitree(verb, folder, "--json"))
        yield from columns(f"{name} {verb}", found)
        if verb == "score":
            yield from ((f"{name} score of episode {number}", digest(each)) for number, each in enumerate(found))
    pages = work.folder / f"{folder.name} pages"
    compared = work.inquitree("report", folder, "--compare", "--json", "--out", pages)
    yield from columns(f"{name} report --compare", json.loads(compared).get("differences", []))
    yield from tables(f"{name} report", pages)


# Material, help, resuming


def material(work: Work) -> Cases:
    """Yield trees, tasks, synthetic material, registered ids, and public names with their parameters."""
    for name in builtin_ids():
        tree, env = load_tree(name), gym.make(f"ProjectionBench-{name}-v0", disable_env_checker=True)
        (task,) = env.unwrapped.tasks
        yield f"tree {name}", f"{tree.digest[:12]} v{tree.version}"
        yield f"task {name}", f"{task.digest[:12]} v{task.version}"
    for name, difficulty in DIFFICULTIES.items():
        for first in range(0, 50, 10):
            made = [synthetic_tree(seed, difficulty).digest for seed in range(first, first + 10)]
            yield f"synthetic trees, {name}, from seed {first}", digest(made)
    for settings in (WorldSettings(), WorldSettings(claims=(2, 6), deducible=0.5)):
        made = [synthetic_task(seed, settings).digest for seed in range(50)]
        yield f"worlds with {settings.claims} claims", digest(made)
    for name, spec in gym.registry.items():
        if name.startswith(("InquiTree-", "ProjectionBench-")) and spec.entry_point != WITHHELD_ENTRY_POINT:
            yield f"id {name}", f"{digest(spec.kwargs)}{', in arrays' if spec.vector_entry_point else ''}"
    for package in PUBLIC:
        module = import_module(package)
        yield f"names of {package}", digest(sorted(module.__all__))
        for name in module.__all__:
            yield f"{package}.{name}", parameters(getattr(module, name))


def helped(work: Work) -> Cases:
    """Yield the help of every verb, and of each of its options."""
    whole = work.inquitree("--help")
    yield "inquitree", digest(whole.split())
    for verb in re.findall(r"^  ([a-z][a-z-]+)  ", whole, re.MULTILINE):
        about, *options = re.split(r"^  (?=-)", work.inquitree(verb, "--help"), flags=re.MULTILINE)
        yield verb, digest(about.split())
        for option in options:
            yield f"{verb} {re.split(r'[ ,]', option)[0]}", digest(option.split())


def resume(work: Work) -> Cases:
    """Yield whether a log of each kind that is cut behind any line, or within it, is resumed as if never cut."""
    model = {"model": "openai/m", "base_url": work.model.address}
    logs: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
        "inquiry": ("InquiTree-paper2-v0", "random-redo", {"fake_level": 5, "max_turns": 10}, {}),
        "projection": ("ProjectionBench-paper2-v0", "coin", {}, {}),
        "inquiry of a model": ("InquiTree-paper2-v0", "sceptic", {"fake_level": 5, "max_turns": 6}, model),
        "projection of a model": ("ProjectionBench-paper2-v0", "llm", {}, model | {"memory": "conversation"}),
    }
    for name, (env_id, agent, rules, settings) in logs.items():
        env = gym.make(env_id, disable_env_checker=True, privileged=True, **rules)
        file, torn = work.folder / f"{name}.jsonl", work.folder / f"{name} torn.jsonl"
        uncut = inquitree_gym.play(env, inquitree_gym.make_agent(agent, env, **settings), 0, file=file)
        asked, lines, unlike = len(work.model.take()), file.read_bytes().splitlines(keepends=True), []
        for number in range(1, len(lines)):
            for part in (b"", lines[number][: len(lines[number]) // 2]):
                torn.write_bytes(b"".join(lines[:number]) + part)
                resumed = inquitree_gym.play(env, inquitree_gym.make_agent(agent, env, **settings), 0, file=torn)
                kept = sum(b'"kind":"reply"' in line for line in lines[:number])
                same = resumed.fingerprint == uncut.fingerprint and summary(resumed) == summary(uncut)
                unlike += [] if same and len(work.model.take()) == asked - kept else [number]
        yield name, f"{summary(uncut)}; {asked} requests; unlike when cut: {unlike or 'never'}"


SECTIONS: dict[str, Callable[[Work], Cases]] = {
    "play": play, "arrays": arrays, "requests": requests, "results": results, "material": material, "help": helped,
    "resume": resume,
}  # fmt: skip


def main() -> None:
    """Write the fingerprints, or compare them with those of the file."""
    options = _options()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    folder = Path(tempfile.mkdtemp(prefix="fingerprints-"))
    work = Work(folder, options.fast)
    found: dict[str, str] = {}
    for section in chosen:
        started, before = time.perf_counter(), len(found)
        try:
            for name, value in SECTIONS[section](work):
                found[f"{section}: {name}"] = value
                if not len(found) % 100:
                    print(f"  {len(found)} cases, the last one {name}", flush=True)
        except Exception:  # noqa: BLE001  (the other sections are compared all the same)
            traceback.print_exc()
            found[f"{section}: failed"] = "an error, see above"
        print(f"{section}: {len(found) - before} cases in {time.perf_counter() - started:.0f} s", flush=True)
    work.model.close()
    shutil.rmtree(folder)
    if not options.check:
        options.file.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    known = json.loads(options.file.read_text(encoding="utf-8"))
    expected = {name: value for name, value in known.items() if name.split(":")[0] in chosen}
    compared = found.keys() if options.fast else found.keys() | expected.keys()
    faults = [name for name in sorted(compared) if found.get(name) != expected.get(name)]
    faults = [name for name in faults if not any(fnmatch.fnmatch(name, pattern) for pattern in options.ignore)]
    for name in faults:
        print(f"{name}: expected {expected.get(name, 'nothing')}, got {found.get(name, 'nothing')}")
    print(f"{len(faults)} of {len(compared)} cases differ")
    sys.exit(bool(faults))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    parser.add_argument("--fast", action="store_true", help="take a small part of the cases")
    parser.add_argument("--only", help=f"sections, comma-separated: {', '.join(SECTIONS)}")
    parser.add_argument("--ignore", action="append", default=[], help="pattern of cases that may differ")
    parser.add_argument("--file", type=Path, default=FILE, help="file of fingerprints")
    return parser.parse_args()


if __name__ == "__main__":
    main()
