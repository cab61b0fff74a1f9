"""The router's rules, one cue a line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contracts.lanes import Lane
from contracts.recall import RecallRequest
from orchestrator.router import TABLE, QueryClass, names_in, route

ENTITY, EXACT, LIST = QueryClass.ENTITY_ANCHORED, QueryClass.EXACT_TERM, QueryClass.LIST
PARAPHRASE, DEFAULT = QueryClass.PARAPHRASE, QueryClass.DEFAULT
WHEN = datetime(2024, 5, 1, tzinfo=UTC)

#: cue, class, temporal, list intent
CUES: list[tuple[str, QueryClass, bool, bool]] = [
    # names
    ("What does Diego do?", ENTITY, False, False),
    ("where does Maria work", ENTITY, False, False),
    ("who manages Acme", ENTITY, False, False),
    ("is the Berlin office open?", ENTITY, False, False),
    ("tell me about O'Brien", ENTITY, False, False),
    ("does Jean-Luc like tea", ENTITY, False, False),
    ("what did Ana say yesterday", ENTITY, True, False),
    ("what has Ana said lately?", ENTITY, True, False),
    ("list all of the clients of Acme", ENTITY, False, True),
    ("how many people report to Ana?", ENTITY, False, True),
    ("which of the teams is Diego in", ENTITY, False, True),
    ("what are the hobbies of Tom", ENTITY, False, True),
    ("every meeting with Tom last week", ENTITY, True, True),
    ("ask Zoë about it", ENTITY, False, False),
    ("the ticket ACME-42 of Maria", ENTITY, False, False),
    ("did Ana send the report on Monday", ENTITY, False, False),
    # exact ids, quotes and capitals
    ("OPS-1234", EXACT, False, False),
    ("status of OPS-1234", EXACT, False, False),
    ("who fixed the ticket AB2-77?", EXACT, False, False),
    ("mail to ana@example.com", EXACT, False, False),
    ("https://example.com/a", EXACT, False, False),
    ("open http://localhost", EXACT, False, False),
    ("the file /etc/hosts/deny", EXACT, False, False),
    ("what is in /var/log", EXACT, False, False),
    ("release 1.2.3", EXACT, False, False),
    ("upgrade to v10.20.30 now", EXACT, True, False),
    ('the phrase "blue door"', EXACT, False, False),
    ("the phrase “blue door”", EXACT, False, False),
    ('who said "Maria left"', EXACT, False, False),
    ("reset the VPN", EXACT, False, False),
    ("what does HTTP_PROXY do?", EXACT, False, False),
    ("the GPU quota", EXACT, False, False),
    ("list all the tickets like OPS-1", EXACT, False, True),
    ("how many errors in OPS-1 last week", EXACT, True, True),
    ("the latest word on OPS-77", EXACT, True, False),
    ("every VPN outage", EXACT, False, True),
    # lists
    ("list the open tickets", LIST, False, True),
    ("all of the meetings", LIST, False, True),
    ("all the meetings", LIST, False, True),
    ("every meeting", LIST, False, True),
    ("enumerate the risks", LIST, False, True),
    ("how many servers do we have?", LIST, False, True),
    ("how much did it cost", LIST, False, True),
    ("name every city", LIST, False, True),
    ("name the cities", LIST, False, True),
    ("which of them are late", LIST, False, True),
    ("what are the deadlines?", LIST, False, True),
    ("what were the findings", LIST, False, True),
    ("what kinds of tea are there", LIST, False, True),
    ("what sort of tea is it", LIST, False, True),
    ("List the outages of the past 3 months", LIST, True, True),
    ("all the invoices of this year", LIST, True, True),
    ("what were the incidents 2 weeks ago", LIST, True, True),
    # questions and long cues in ordinary words
    ("where do we keep the keys?", PARAPHRASE, False, False),
    ("why?", PARAPHRASE, False, False),
    ("where does the team like to eat", PARAPHRASE, False, False),
    ("what happened yesterday?", PARAPHRASE, True, False),
    ("who is on call tonight?", PARAPHRASE, True, False),
    ("what do we do next week", PARAPHRASE, True, False),
    ("what did we decide 3 days ago", PARAPHRASE, True, False),
    ("what happened on 2024-05-01?", PARAPHRASE, True, False),
    ("What is it all about?", PARAPHRASE, False, False),
    ("what did we plan for Monday?", PARAPHRASE, False, False),
    ("what I'd like to eat for lunch", PARAPHRASE, False, False),
    ("he went home. Then he slept", PARAPHRASE, False, False),
    # nothing stands out
    ("coffee", DEFAULT, False, False),
    ("coffee with milk", DEFAULT, False, False),
    ("Coffee", DEFAULT, False, False),
    ("blue suede shoes", DEFAULT, False, False),
    ("last week", DEFAULT, True, False),
    ("recently read books", DEFAULT, True, False),
    ("current address", DEFAULT, True, False),
    ("the listing", DEFAULT, False, False),
    ("everyone knows", DEFAULT, False, False),
    ("he knows nothing", DEFAULT, False, False),
    ("", DEFAULT, False, False),
]


def test_the_table_of_cues_is_large() -> None:
    assert len(CUES) >= 60
    assert {query_class for _, query_class, _, _ in CUES} == set(QueryClass)


@pytest.mark.parametrize(("cue", "query_class", "temporal", "list_intent"), CUES)
def test_cue(cue: str, query_class: QueryClass, temporal: bool, list_intent: bool) -> None:
    taken = route(RecallRequest(cue=cue))
    assert (taken.query_class, taken.temporal, taken.list_intent) == (query_class, temporal, list_intent), taken.reason
    assert (taken.weights, taken.top_n) == (TABLE[query_class][0], max(TABLE[query_class][1], 400 * list_intent))


def test_default_weights() -> None:
    assert route(RecallRequest(cue="coffee")).weights == {Lane.SEMANTIC: 1.0, Lane.LEXICAL: 1.0, Lane.GRAPH: 1.2}


@pytest.mark.parametrize(
    ("query_class", "lane"),
    [(ENTITY, Lane.GRAPH), (EXACT, Lane.LEXICAL), (LIST, Lane.SEMANTIC), (PARAPHRASE, Lane.SEMANTIC)],
)
def test_every_class_lifts_its_lane_and_silences_none(query_class: QueryClass, lane: Lane) -> None:
    weights = TABLE[query_class][0]
    assert set(weights) == set(Lane)
    assert max(weights, key=lambda name: weights[name]) is lane
    assert min(weights.values()) > 0


def test_a_list_widens_the_pool_of_any_class() -> None:
    assert route(RecallRequest(cue="how many people report to Ana?")).top_n == 400
    assert route(RecallRequest(cue="who reports to Ana?")).top_n == 100


@pytest.mark.parametrize("name", ["since", "until", "as_of"])
def test_time_filters_make_it_temporal(name: str) -> None:
    assert route(RecallRequest(cue="coffee", **{name: WHEN})).temporal


def test_filters_anchor() -> None:
    assert route(RecallRequest(cue="coffee", subject="Ana")).query_class is ENTITY
    assert route(RecallRequest(cue="OPS-1", subject="Ana")).query_class is ENTITY
    assert route(RecallRequest(cue="coffee", types=("Person",))).query_class is ENTITY
    assert route(RecallRequest(cue="coffee", session="s")).query_class is DEFAULT


def test_names_in_order_without_sentence_starts_and_calendar() -> None:
    cue = "Yesterday Maria met Tom on Friday in May. She left. Then Ana came, and I'm glad"
    assert names_in(cue) == ["Maria", "Tom", "Ana"]


def test_pure() -> None:
    request = RecallRequest(cue="list all of the clients of Acme since last week")
    assert route(request) == route(request)
