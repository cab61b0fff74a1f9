#!/bin/sh
# Makes .venv with everything in it, pinned; does nothing when that is done already.
# MEMLANE_PYTHON names the Python to use where the first python3 on PATH is too old.
set -eu
cd "$(dirname "$0")/.."

python=${MEMLANE_PYTHON:-}
for candidate in python3 python3.13 python3.12 python3.11; do
    [ -n "$python" ] && break
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; fi
done
[ -n "$python" ] || { echo "memlane needs Python 3.11 or newer; set MEMLANE_PYTHON" >&2; exit 1; }

stamp=.venv/.memlane-$(cat pyproject.toml infra/constraints.txt | cksum | cut -d' ' -f1)
[ -e "$stamp" ] && exit 0

[ -x .venv/bin/python ] || "$python" -m venv .venv || {
    echo "cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
echo "installing into .venv (the first time takes a few minutes)" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c infra/constraints.txt \
    -e '.[embedded,scale,http,mcp,metrics,tracing,security,dev]'
touch "$stamp"
