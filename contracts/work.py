"""The queue-group services: embedding and reranking."""

from __future__ import annotations

from typing import Literal

from contracts.base import LaxMessage


class EmbedRequest(LaxMessage):
    """Texts to embed. A cue goes before documents, so that bulk ingestion never makes a reader wait."""

    texts: tuple[str, ...]
    purpose: Literal["cue", "document"] = "document"
    remaining_ms: float = 30_000.0


class EmbedReply(LaxMessage):
    """One packed, unit-length float32 vector a text; `model` names what made them."""

    model: str
    dimension: int
    vectors: tuple[str, ...]
    took_ms: float = 0.0


class RerankRequest(LaxMessage):
    cue: str
    texts: tuple[str, ...]
    remaining_ms: float = 1000.0


class RerankReply(LaxMessage):
    """`scores[i]` in [0, 1] is the calibrated relevance of `texts[i]` to the cue."""

    model: str
    scores: tuple[float, ...]
    took_ms: float = 0.0
