"""Measure the start-up time: `import inquitree_gym`, then `gym.make` and `reset`, and `inquitree --help`."""

from __future__ import annotations

import os
import tempfile
from functools import partial

from measure import FORBIDDEN, HEAVY, Row, alternate, fresh, hand_over, ratios, spread

IMPORT_ROUNDS = 15
MAKE_ROUNDS = 9
IMPORT_TARGET = 1.5
"""Target: maximum ratio to the import of Gymnasium."""
MAKE_TARGET = 30.0
"""Target in milliseconds."""
MENU_ROUNDS = 5
MENUS = {"InquiTree-paper12-menu-v0": 300.0, "InquiTree-menu-v0": 300.0, "InquiTree-synthetic-menu-v0": 100.0}
"""Targets in milliseconds: of make and first reset for shipped trees, of a reset for fiction."""

IMPORT = """
import json, sys, time
begun = time.perf_counter()
import {module}
took = time.perf_counter() - begun
print(json.dumps([took * 1e3, [name for name in {heavy} if name in sys.modules]]))
"""

MODULES = "import inquitree_gym.inquiry.env, jinja2.sandbox"

MAKE = """
import json, sys, time
import gymnasium as gym
import inquitree_gym
{before}

def make(tree):
    begun = time.perf_counter()
    env = gym.make(f"InquiTree-{{tree}}-v0")
    env.reset(seed=0)
    return env, (time.perf_counter() - begun) * 1e3

env, first = make("paper12")
_, other = make("paper10")
again = [make("paper12")[1] for _ in range(20)]
begun = time.perf_counter()
env.step(env.unwrapped.tree.subtopics[0].text)
step = (time.perf_counter() - begun) * 1e3
loaded = [name for name in {heavy} if name in sys.modules]
print(json.dumps([first, other, sorted(again)[10], step, loaded]))
"""

MENU = """
import json, sys, time
import gymnasium as gym
import inquitree_gym
begun = time.perf_counter()
env = gym.make("{name}")
env.reset(seed=0)
first = (time.perf_counter() - begun) * 1e3
others = []
for seed in range(1, 11):
    begun = time.perf_counter()
    env.reset(seed=seed)
    others.append((time.perf_counter() - begun) * 1e3)
print(json.dumps([first, max(others), [name for name in {heavy} if name in sys.modules]]))
"""

CPU_ROUNDS = 9
HELP_TARGET = 250.0
"""Target in milliseconds of CPU time."""
FIRST = """
import json, time
import gymnasium as gym
begun = time.process_time()
import inquitree_gym
gym.make("InquiTree-paper12-v0").reset(seed=0)
print(json.dumps((time.process_time() - begun) * 1e3))
"""
HELP = """
import contextlib, json, os, time
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):
    from inquitree_gym.cli import main
    main(["--help"])
print(json.dumps(time.process_time() * 1e3))
"""
BARE = "import gymnasium, json, time; print(json.dumps(time.process_time() * 1e3))"


def imports() -> list[Row]:
    loaded: set[str] = set()

    def once(module: str) -> float:
        took, found = fresh(IMPORT.format(module=module, heavy=HEAVY))
        if module == "inquitree_gym":
            loaded.update(found)
        return took

    tasks = [partial(once, module) for module in ("inquitree_gym", "gymnasium")]
    alternate(tasks, 1)  # leaves the files in the system's cache
    ours, theirs = alternate(tasks, IMPORT_ROUNDS)
    ratio = ratios(ours, theirs)
    return [
        Row(
            "`import inquitree_gym`, fresh process",
            spread(ours).show(".0f", "ms"),
            f"`import gymnasium` {spread(theirs).show('.0f', 'ms')}",
            ratio.show(".2f"),
            f"≤ {IMPORT_TARGET}",
            ratio.median <= IMPORT_TARGET,
        ),
        absence("heavy modules loaded by this import", loaded),
    ]


def makes() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INQUITREE_CACHE"] = folder
        codes = [MAKE.format(heavy=HEAVY, before=before) for before in ("", MODULES)]
        fresh(codes[0])  # fills the vector cache
        cold, warm = alternate([partial(fresh, code) for code in codes], MAKE_ROUNDS)
    first, other, again, step, loaded = zip(*cold, strict=True)
    figures = [
        ("`gym.make` + `reset`, first in a fresh process that has imported the package", first),
        ("`gym.make` + `reset`, required modules already imported", [run[0] for run in warm]),
        ("`gym.make` + `reset` of another tree, not yet played", other),
        ("`gym.make` + `reset` of the same tree again", again),
    ]
    rows = [
        Row(what, (s := spread(values)).show(".1f", "ms"), target=f"< {MAKE_TARGET:.0f} ms", met=s.median < MAKE_TARGET)
        for what, values in figures
    ]
    rows.append(Row("first step in a process: a text of the tree, vectors cached", spread(step).show(".1f", "ms")))
    return [*rows, absence("heavy modules loaded after all of the above", {name for names in loaded for name in names})]


def processors() -> list[Row]:
    """Measure CPU time with bytecode cached, the best of several rounds, since other programs only add to it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the threads of NumPy spin while they wait, which counts as CPU time
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INQUITREE_CACHE"] = folder
        tasks = [partial(fresh, code) for code in (FIRST, HELP, BARE)]
        alternate(tasks, 1)  # writes the bytecode and fills the vector cache
        first, helped, bare = map(min, alternate(tasks, CPU_ROUNDS))
    best = f"CPU, best of {CPU_ROUNDS}"
    return [
        Row(f"`gym.make` + `reset` of a shipped tree, first in a process, beyond `import gymnasium` ({best})",
            f"{first:.0f} ms"),
        Row(f"`inquitree --help`, whole process ({best})", f"{helped:.0f} ms",
            f"process with `import gymnasium` {bare:.0f} ms", f"{helped / bare:.2f}",
            f"≤ {HELP_TARGET:.0f} ms", helped <= HELP_TARGET),
    ]  # fmt: skip


def menus() -> list[Row]:
    rows, loaded = [], set()
    for name, target in MENUS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["INQUITREE_CACHE"] = folder  # stays empty: nothing is embedded
            found = [fresh(MENU.format(name=name, heavy=HEAVY)) for _ in range(MENU_ROUNDS)]
        first, slowest, modules = zip(*found, strict=True)
        loaded.update(name for names in modules for name in names)
        about = (
            (f"`gym.make` + `reset` of `{name}`, fresh process, empty cache", spread(first), "synthetic" not in name),
            (f"`reset` of `{name}`, slowest of ten", spread(slowest), "synthetic" in name),
        )
        rows += [
            Row(what, s.show(".0f", "ms"), target=f"≤ {target:.0f} ms", met=s.median <= target)
            if bound
            else Row(what, s.show(".0f", "ms"))
            for what, s, bound in about
        ]
    return [*rows, absence("heavy modules loaded by the discrete view", loaded)]


def absence(what: str, loaded: set[str]) -> Row:
    """Report which heavy modules were found in `sys.modules`."""
    found = ", ".join(name for name in HEAVY if name in loaded) or "none"
    return Row(what, found, target=f"no {', '.join(FORBIDDEN)}", met=not loaded & set(FORBIDDEN))


if __name__ == "__main__":
    hand_over([*imports(), *makes(), *processors(), *menus()])
