#!/bin/sh
# The checks and all tests. Arguments go to pytest. MEMLANE_DATA names a folder of data sets, where there is one;
# MEMLANE_REQUIRE_NEO4J=1 makes a Neo4j that does not start a failure.
set -eu
cd "$(dirname "$0")/.."
sh infra/setup.sh
.venv/bin/ruff check .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
exec .venv/bin/python -m pytest "$@"
