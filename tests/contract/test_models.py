"""Loading models offline: no connection is tried, and a missing model is one clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contracts.errors import Unavailable
from workers.models import PACKAGED, CrossEncoderScorer, SentenceEmbedder

#: Loads a model while every way out of the process is watched and shut.
_WATCHED = """
import socket, sys
tried = []
def refuse(*args, **_):
    tried.append(args)
    raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse
from contracts.errors import Unavailable
from workers.models import CrossEncoderScorer, SentenceEmbedder
assert SentenceEmbedder("packaged", 1).embed(["a text"]).shape == (1, 384)
for load in (SentenceEmbedder, CrossEncoderScorer):
    try:
        load("nobody/has-such-a-model", 1)
        raise SystemExit("a model out of nowhere")
    except Unavailable:
        pass
print("tried", len(tried))
"""


def test_no_connection_is_tried() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("tried 0")


@pytest.mark.parametrize("load", [SentenceEmbedder, CrossEncoderScorer])
def test_a_missing_model_is_named(load: type[SentenceEmbedder] | type[CrossEncoderScorer]) -> None:
    with pytest.raises(Unavailable, match="nobody/has-such-a-model"):
        load("nobody/has-such-a-model", 1)


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        SentenceEmbedder(str(tmp_path), 1)


def test_unit_vectors_and_paraphrase() -> None:
    vectors = SentenceEmbedder(PACKAGED, 1).embed(["the cat sleeps", "a feline naps", "quarterly tax report"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-4)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
