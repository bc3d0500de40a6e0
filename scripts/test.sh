#!/usr/bin/env bash
# Make an environment of its own and pass the tests in it, two files at a time; those of Ray after the others, and those
# of the environments also on the oldest Gymnasium we support, those of inspect_ai and OpenEnv with packages that do not go
# with the others.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv-test
.venv-test/bin/python -m pip install -q -c constraints.txt -e '.[test]'
export HF_HUB_OFFLINE=1 INQUITREE_CACHE="$PWD/.venv-test/vectors"
.venv-test/bin/python -m pytest -n 2 --dist loadfile
.venv-test/bin/python -m pip install -q -c constraints.txt -e '.[ray]'  # 240 MB, which no other test needs
.venv-test/bin/python -m pytest tests/runner/test_ray.py
oldest=.venv-test/gymnasium-1.2.2
test -d "$oldest" || .venv-test/bin/python -m pip install -q --no-deps --target "$oldest" gymnasium==1.2.2
PYTHONPATH="$oldest" .venv-test/bin/python -m pytest -n 2 --dist loadfile -m "not weights" tests/envs tests/wrappers
inspect=$PWD/.venv-test/inspect
test -d "$inspect" || .venv-test/bin/python -m pip install -q -c constraints-inspect.txt --target "$inspect" inspect-ai openai mcp
# inspect_ai leaves streams open, which Python tells when the process ends.
PYTHONPATH="$inspect" .venv-test/bin/python -m pytest -W ignore::pytest.PytestUnraisableExceptionWarning tests/integrations/test_inspect.py
openenv=$PWD/.venv-test/openenv
test -d "$openenv" || .venv-test/bin/python -m pip install -q -c constraints-openenv.txt --target "$openenv" openenv
PYTHONPATH="$openenv" .venv-test/bin/python -m pytest tests/integrations/test_openenv.py
