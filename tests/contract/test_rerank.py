"""The rerank lane on a tiny real cross-encoder, and its worker's deadline on a slow fake."""

from __future__ import annotations

import socket
import time

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted, Unavailable
from contracts.ports import Call
from contracts.work import RerankReply, RerankRequest
from workers import rerank
from workers.models import CrossEncoderScorer
from workers.rerank import CHUNK, RerankWorker

WORDS = "the a cat dog sat on mat where is was blue door key ana rome".split()


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoderScorer:
    """A cross-encoder of two thin layers with random weights, saved and loaded as a real one is."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path = tmp_path_factory.mktemp("models") / "tiny-cross-encoder"
    path.mkdir()
    (path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"))
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 5, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return CrossEncoderScorer(str(path), threads=1)


@pytest.mark.parametrize("count", [1, 2, 9, 40])
def test_shape_and_range(scorer: CrossEncoderScorer, count: int) -> None:
    scores = scorer.score("where is the cat", [f"the {WORDS[number % len(WORDS)]} sat" for number in range(count)])
    assert scores.shape == (count,)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()


def test_the_text_matters_and_its_company_does_not(scorer: CrossEncoderScorer) -> None:
    texts = ["the cat sat on the mat", "blue door key", "ana was on rome"]
    together = scorer.score("where is the cat", texts)
    assert len(set(together.tolist())) == 3
    alone = [float(scorer.score("where is the cat", [text])[0]) for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("text", ["", "xyzzy", "cat " * 500, "日本 🙂"])
def test_odd_texts(scorer: CrossEncoderScorer, text: str) -> None:
    assert scorer.score("cat", [text]).shape == (1,)


def test_named_after_its_folder(scorer: CrossEncoderScorer) -> None:
    assert scorer.model == "tiny-cross-encoder"


@pytest.mark.parametrize("model", ["no-such-owner/no-such-model", "/no/such/path"])
def test_missing_weights_are_refused_without_a_network(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was tried")

    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    started = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        CrossEncoderScorer(model, threads=1)
    assert time.monotonic() - started < 5
    assert caught.value.details["model"] == model
    assert caught.value.details["kind"] != "AssertionError"


async def ask(worker: RerankWorker, count: int, remaining_ms: float = 5000.0) -> RerankReply:
    (endpoint,) = worker.endpoints()
    assert endpoint.subject == subjects.RERANK
    request = RerankRequest(
        cue="cat", texts=tuple(f"the {number}" for number in range(count)), remaining_ms=remaining_ms
    )
    data = await endpoint.handle(Call(endpoint.subject, wire.encode(request), time.monotonic()))
    return wire.decode_reply(RerankReply, data)


async def test_worker_on_the_real_one(scorer: CrossEncoderScorer) -> None:
    reply = await ask(RerankWorker(scorer), 2 * CHUNK + 3)
    assert reply.model == "tiny-cross-encoder"
    assert len(reply.scores) == 2 * CHUNK + 3
    assert all(0 <= score <= 1 for score in reply.scores)


class SlowScorer:
    model = "slow"

    def __init__(self, chunk_s: float) -> None:
        self.chunk_s = chunk_s
        self.calls: list[int] = []
        self.at_once = self.most_at_once = 0

    def score(self, cue: str, texts: list[str]) -> NDArray[np.float32]:
        self.calls.append(len(texts))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.chunk_s)
        self.at_once -= 1
        return np.array([int(text.split()[1]) / 1000 for text in texts], dtype=np.float32)


async def test_in_chunks_in_order() -> None:
    slow = SlowScorer(0.0)
    reply = await ask(RerankWorker(slow), 2 * CHUNK + 1)
    assert slow.calls == [CHUNK, CHUNK, 1]
    assert reply.scores == pytest.approx([number / 1000 for number in range(2 * CHUNK + 1)])
    assert (await ask(RerankWorker(slow), 0)).scores == ()


async def test_stops_at_the_deadline() -> None:
    slow = SlowScorer(0.06)
    worker = RerankWorker(slow)
    started = time.monotonic()
    with pytest.raises(Exhausted) as caught:
        await ask(worker, 20 * CHUNK, remaining_ms=100.0)
    assert caught.value.code is ErrorCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started < 0.6
    assert caught.value.details["scored"] == CHUNK * len(slow.calls) < 20 * CHUNK
    assert worker.stats()["waiting"] == 0


async def test_no_time_at_all() -> None:
    slow = SlowScorer(0.0)
    with pytest.raises(Exhausted):
        await ask(RerankWorker(slow), 1, remaining_ms=0.0)
    assert slow.calls == []


async def test_one_at_a_time() -> None:
    slow = SlowScorer(0.01)
    worker = RerankWorker(slow)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask, worker, 2 * CHUNK)
    assert (slow.most_at_once, len(slow.calls)) == (1, 6)


async def test_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "MOST_WAITING", 2)
    worker = RerankWorker(SlowScorer(0.1))
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(ask, worker, 1)
        await anyio.sleep(0.02)
        with pytest.raises(Exhausted) as caught:
            await ask(worker, 1)
    assert caught.value.code is ErrorCode.OVERLOADED
    assert len((await ask(worker, 1)).scores) == 1
