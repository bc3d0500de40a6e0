#!/usr/bin/env bash
# Make an environment of its own, play the baselines on every shipped tree, in drawn worlds and in the papers' own, without
# fake results and with three in ten, and print one table.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/python -m pip install -q -c constraints.txt '.[offline,plots]'
.venv/bin/inquitree run --study studies/baselines.toml --out runs/quickstart/drawn
.venv/bin/inquitree run --study studies/baselines-actual.toml --out runs/quickstart/actual
.venv/bin/inquitree report runs/quickstart/drawn runs/quickstart/actual --out runs/quickstart/report
echo "A page to show: $PWD/runs/quickstart/report/report.html"
echo "A picture to show: $PWD/runs/quickstart/report/report-figures/fake-level-return.png"
