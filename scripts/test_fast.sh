#!/usr/bin/env bash
# Run the fast tests in an environment without torch.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv-fast
python3 scripts/requirements.py core llm plots fast --without sentence-transformers > .venv-fast/requirements.txt
.venv-fast/bin/python -m pip install -q -c constraints.txt -r .venv-fast/requirements.txt
.venv-fast/bin/python -m pip install -q --no-deps -e .
.venv-fast/bin/python -m pytest -m "not weights" -n 2 --dist loadfile "$@"
