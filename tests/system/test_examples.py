"""The examples of contracts/README.md do what they say there."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import Any

from tests.stack import Stack

README = Path(__file__).parents[2] / "contracts" / "README.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"  # prints (.*)$", re.MULTILINE)


async def test_they_run_from_top_to_bottom_and_print_what_they_say(stack: Stack) -> None:
    text = README.read_text("utf-8")
    blocks = _BLOCK.findall(text)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        source = block.replace("nats://127.0.0.1:4222", stack.url)
        code = compile(source, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            running = eval(code, names)
            if inspect.iscoroutine(running):
                await running
        assert out.getvalue().splitlines() == _PRINTS.findall(source)
