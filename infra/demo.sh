#!/bin/sh
# The main job on a fresh machine: install, start the embedded stack, ingest the sample, recall ten cues, stop.
set -eu
cd "$(dirname "$0")/.."
sh infra/setup.sh
exec .venv/bin/python -m infra.demo
