"""A vector that a caller sent instead of leaving it to the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contracts.errors import ErrorCode, InvalidRequest
from contracts.memory import pack_vector


def caller_vector(values: Sequence[float] | None, dimension: int) -> str | None:
    """The packed unit vector, or None where there is none.

    Raises InvalidRequest: BAD_VECTOR_DIMENSION for another length, INVALID_REQUEST for one without a direction.
    """
    if values is None:
        return None
    if len(values) != dimension:
        raise InvalidRequest(
            ErrorCode.BAD_VECTOR_DIMENSION,
            f"vector has {len(values)} numbers, the model has {dimension}",
            field="vector",
            expected=dimension,
            actual=len(values),
        )
    vector = np.asarray(values, dtype=np.float32)
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or norm == 0.0:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, "vector has no direction: NaN, infinite or zero", field="vector"
        )
    return pack_vector(vector / norm)
