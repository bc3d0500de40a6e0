"""The first things that are typed: the version, the module as a program, and completion of names."""

from __future__ import annotations

import subprocess
import sys

import inquitree_gym
from tests.contract.command_line import inquitree


def test_the_command_line_prints_its_version():
    done = inquitree("--version")
    assert (done.status, done.out.strip()) == (0, f"inquitree-gym {inquitree_gym.__version__}")


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "inquitree_gym", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, f"inquitree-gym {inquitree_gym.__version__}")


def test_completion_finds_the_public_names_and_no_module():
    assert set(dir(inquitree_gym)) == {*inquitree_gym.__all__, "__version__"}
    assert {"play", "make_agent", "load_tree", "InquiryEnv"} <= set(dir(inquitree_gym))
