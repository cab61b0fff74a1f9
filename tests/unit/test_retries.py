"""When the client tries again, as a table."""

from __future__ import annotations

import pytest

from contracts.encode import EncodeRequest, ForgetRequest
from contracts.errors import Denied, ErrorCode, Exhausted, MemlaneError, Unavailable
from contracts.query import FeedbackRequest
from contracts.recall import RecallRequest
from contracts.retries import LONGEST_S, pause_s, repeatable, shortened
from contracts.txn import BeginRequest

AWAY = Unavailable(ErrorCode.UNAVAILABLE, "away")


@pytest.mark.parametrize(
    ("failed", "error", "least", "most"),
    [
        (1, AWAY, 0.05, 0.1),
        (2, AWAY, 0.1, 0.2),
        (3, AWAY, 0.2, 0.4),
        (50, AWAY, LONGEST_S / 2, LONGEST_S),
        (1, Exhausted(ErrorCode.OVERLOADED, "busy", retry_after_ms=700), 0.7, 0.7),
        (1, Exhausted(ErrorCode.OVERLOADED, "busy", retry_after_ms="soon"), 0.05, 0.1),
    ],
)
def test_pauses_grow_and_heed_what_the_service_says(
    failed: int, error: MemlaneError, least: float, most: float
) -> None:
    assert pause_s(failed, error, lambda: 0.0) == pytest.approx(least)
    assert pause_s(failed, error, lambda: 1.0) == pytest.approx(most)


def test_what_the_caller_must_change_is_not_tried_again() -> None:
    assert pause_s(1, Denied(ErrorCode.NOT_PERMITTED, "no"), lambda: 0.0) is None


def test_what_would_count_twice_gets_an_id_and_what_has_one_keeps_it() -> None:
    copy = EncodeRequest(text="x", allow_duplicates=True)
    one, two = repeatable(copy), repeatable(copy)
    assert isinstance(one, EncodeRequest)
    assert isinstance(two, EncodeRequest)
    assert one.request_id
    assert one.request_id != two.request_id  # two calls are two memories; only the tries of one are the same
    feedback = repeatable(FeedbackRequest(id="a" * 26, useful=True))
    assert isinstance(feedback, FeedbackRequest)
    assert feedback.request_id
    begin = repeatable(BeginRequest())
    assert isinstance(begin, BeginRequest)
    assert begin.txn_id
    for request in (
        EncodeRequest(text="x"),  # its content is its identity
        EncodeRequest(text="x", allow_duplicates=True, request_id="mine"),
        FeedbackRequest(id="a" * 26, useful=True, request_id="mine"),
        BeginRequest(txn_id="mine"),
        RecallRequest(cue="x"),
    ):
        assert repeatable(request) is request


def test_an_operation_of_a_transaction_is_never_repeated() -> None:
    assert repeatable(EncodeRequest(text="x", txn_id="t")) is None
    assert repeatable(ForgetRequest(id="a" * 26, txn_id="t")) is None


def test_a_further_try_asks_for_what_is_left_of_the_deadline() -> None:
    short = shortened(RecallRequest(cue="x", deadline_ms=1000), 0.25)
    assert isinstance(short, RecallRequest)
    assert short.deadline_ms == 250
    longer = RecallRequest(cue="x", deadline_ms=100)
    assert shortened(longer, 0.25) is longer
    assert shortened(BeginRequest(), 0.25) == BeginRequest()
