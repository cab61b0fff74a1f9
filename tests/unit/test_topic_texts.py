"""What topics are called, and how they are summed up."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.analysis import stem
from workers.upkeep.labels import label_of, words_of
from workers.upkeep.summary import MOST_SENTENCES, Sentence, sentences_of, summarise

LOGIN = ["The login of Ana failed", "Logins fail after the reset", "Another failed login by Ben"]
BAKERY = ["The bakery opens at six", "Ana likes the bakery", "Fresh bread at the bakery"]


def label(texts: list[str], others: list[str], clusters: int = 2) -> str:
    words = [words_of(text) for text in texts]
    project = Counter(name for text in [*texts, *others] for name in {stem(word) for word in words_of(text)})
    return label_of(words, project, clusters)


def sentence(number: int, text: str, *vector: float) -> Sentence:
    values = np.array(vector or (1.0, 0.0), dtype=np.float32)
    return Sentence(str(number), text, values / np.linalg.norm(values))


class TestLabels:
    def test_the_words_that_the_topic_shares_and_others_do_not(self) -> None:
        assert label(LOGIN, BAKERY) == "failed, login"
        assert label(BAKERY, LOGIN) == "bakery"

    def test_no_stop_words_filler_numbers_or_ids(self) -> None:
        assert words_of("Thanks! The 3 tickets TCK-4411 were about it") == ("tickets",)

    def test_a_word_counts_once_a_text_and_shows_in_its_commonest_form(self) -> None:
        assert label(["resets", "resets", "reset reset reset"], []) == "resets"

    def test_where_nothing_is_shared_any_word_will_do(self) -> None:
        assert label(["apples", "pears"], []) == "apples, pears"
        assert label(["the", "123"], []) == ""

    @given(st.lists(st.text(max_size=40), max_size=5))
    def test_any_texts(self, texts: list[str]) -> None:
        assert label(texts, []) == label(texts, [])


class TestSummaries:
    def test_sentences(self) -> None:
        assert (
            sentences_of("One. Two\nthree!  Four? 五。六")
            == ["One.", "Two", "three!", "Four?", "五。", "六"][:MOST_SENTENCES]
        )
        assert sentences_of("e.g.this stays one 3.14") == ["e.g.this stays one 3.14"]
        assert sentences_of(" \n ") == []

    def test_the_most_central_first(self) -> None:
        told = [sentence(1, "far", 0, 1), sentence(2, "near", 1, 0.1), sentence(3, "nearer", 1, 0.2)]
        assert summarise("topic", told, 15) == "topic: nearer."

    def test_what_says_the_same_again_gives_way_and_the_order_is_that_of_the_texts(self) -> None:
        told = [sentence(1, "other", 0.3, 1), sentence(2, "same", 1, 0.01), sentence(3, "same again", 1, 0)]
        assert summarise("t", told, 16) == "t: other. same."

    def test_a_first_one_that_is_too_long_is_cut(self) -> None:
        assert summarise("t", [sentence(1, "x" * 50)], 20) == "t: " + "x" * 16 + "…"

    def test_of_nothing(self) -> None:
        assert summarise("t", []) == ""

    @given(st.lists(st.text(min_size=1, max_size=300).filter(str.strip), min_size=1, max_size=12))
    def test_never_longer_than_allowed_and_always_the_same(self, texts: list[str]) -> None:
        rng = np.random.default_rng(1)
        told = [sentence(number, text, *rng.normal(size=4)) for number, text in enumerate(texts)]
        made = summarise("label", told)
        assert len(made) <= 600
        assert made == summarise("label", told)
