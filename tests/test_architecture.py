"""What may import what (see importlinter.ini), and that the rules are alive."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = Path(__file__).parent / "importlinter.ini"
LINT = Path(sysconfig.get_path("scripts")) / "lint-imports"


def lint(rules: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(LINT), "--config", str(rules), "--no-cache"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_imports_keep_to_the_rules() -> None:
    done = lint(RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 broken" in done.stdout


def test_a_broken_rule_would_show(tmp_path: Path) -> None:
    rules = tmp_path / "importlinter.ini"
    text = RULES.read_text("utf-8")
    assert text.count("\n    workers.semantic.vectors\n") == 1
    rules.write_text(text.replace("\n    workers.semantic.vectors\n", "\n"), "utf-8")
    done = lint(rules)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "hnswlib" in done.stdout
