"""The quality of a text: deterministic, bounded, low for filler and higher for what tells something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.encode.quality import quality_of

SPECIFIC = "Customer 8821 reported login failures on Tuesday after the MFA reset by Ana Duarte at Globex"
PLAIN = "somebody said the login was failing after a reset"


@given(st.text(max_size=400))
def test_bounded_and_the_same_each_time(text: str) -> None:
    assert 0.0 <= quality_of(text) <= 1.0
    assert quality_of(text) == quality_of(text)


@pytest.mark.parametrize(
    "filler", ["ok thanks", "Ok, great!", "yes", "hi", "...", "", "thank you so much, sounds good"]
)
def test_filler_tells_nothing(filler: str) -> None:
    assert quality_of(filler) < 0.1


def test_a_specific_sentence_is_above_a_plain_one() -> None:
    assert quality_of(SPECIFIC) > 0.7 > quality_of(PLAIN) > 0.2


def test_repetition_takes_away() -> None:
    assert quality_of("login failed again " * 20) < quality_of(PLAIN) < quality_of(SPECIFIC)
    assert quality_of(SPECIFIC + " " + SPECIFIC) < quality_of(SPECIFIC)


@given(
    st.lists(st.sampled_from("red green blue login invoice harbour crane museum roof".split()), min_size=1, unique=True)
)
def test_a_further_new_word_never_takes_away(words: list[str]) -> None:
    assert quality_of(" ".join(words)) >= quality_of(" ".join(words[:-1]))


def test_other_scripts_count() -> None:
    assert quality_of("客户在重置多因素认证后无法登录系统") > 0.4


def test_a_very_long_text_is_quick_and_bounded() -> None:
    assert quality_of("word17 " * 200_000) <= 1.0
