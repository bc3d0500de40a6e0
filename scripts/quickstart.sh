#!/usr/bin/env bash
# Make an environment of its own, play every baseline on every shipped tree, and print the report.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/python -m pip install -q -c constraints.txt '.[offline,plots]'
.venv/bin/inquitree run --study studies/baselines.toml --out runs/quickstart
.venv/bin/inquitree report runs/quickstart
