"""What the lexical lane guarantees, the same for both engines."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from contracts.lanes import LaneQuery, LaneReply, ScoreQuery
from contracts.memory import MemoryRecord, Statement, Tombstone, derive_id
from contracts.ports import Entry
from workers.lexical.index import LexicalIndex

EngineName = Literal["whoosh", "tantivy"]
Make = Callable[[], LexicalIndex]
WHEN = datetime(2024, 5, 1, tzinfo=UTC)
TEAMS = ("Billing", "Search")
FILLER = [f"Filler number {number} tells of gardens, rivers and a quiet meeting" for number in range(30)]


@pytest.fixture(params=["whoosh", "tantivy"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    if request.param == "tantivy":
        pytest.importorskip("tantivy", reason="the engine 'tantivy' is the optional extra 'scale'")
    return request.param


@pytest.fixture
async def make(engine: EngineName, tmp_path: Path) -> AsyncIterator[Make]:
    """Opens the same directory again and again, as restarts do."""
    opened: list[LexicalIndex] = []

    def make() -> LexicalIndex:
        opened.append(LexicalIndex(tmp_path / "index", engine))
        return opened[-1]

    yield make
    for index in opened:
        await index.close()


@pytest.fixture
def index(make: Make) -> LexicalIndex:
    return make()


def an_id(text: str) -> str:
    return derive_id("p", text)


def record(text: str, project: str = "p", gone: bool = False, key: str = "", statements: int = 0) -> MemoryRecord:
    said = tuple(Statement(subject="Diego", predicate="works_at", object=name) for name in TEAMS[:statements])
    return MemoryRecord(
        id=an_id(key or text),
        project=project,
        text=text,
        created_at=WHEN,
        changed_at=WHEN,
        statements=said,
        tombstone=Tombstone(at=WHEN) if gone else None,
    )


def entries(*records: MemoryRecord, start: int = 1) -> list[Entry]:
    return list(enumerate(records, start))


async def fill(index: LexicalIndex, *texts: str) -> None:
    await index.apply(entries(*(record(text) for text in texts), start=index.position + 1))


async def ask(index: LexicalIndex, cue: str, top_n: int = 100, project: str = "p") -> LaneReply:
    return await index.search(LaneQuery(project=project, cue=cue, top_n=top_n))


async def found(index: LexicalIndex, cue: str, *texts: str) -> list[str]:
    """Which of the texts a cue finds, best first."""
    names = {an_id(text): text for text in texts}
    return [names[item] for item in (await ask(index, cue)).items if item in names]


IN_TEXTS = [
    ("ACME-1247", "The ticket ACME-1247 blocks the release."),
    ("acme 1247", "The ticket ACME-1247 blocks the release."),
    ("1247", "The ticket ACME-1247 blocks the release."),
    ("ACME-1247", "See https://jira.corp/browse/ACME-1247."),
    ("jira.corp", "See https://jira.corp/browse/ACME-1247."),
    ("https://jira.corp/browse/ACME-1247", "See (https://jira.corp/browse/ACME-1247)."),
    ("diego@corp.example", "Write to Diego@Corp.example, please."),
    ("corp.example", "Write to Diego@Corp.example, please."),
    ("/etc/hosts", "Edit /etc/hosts as root."),
    ("hosts", "Edit /etc/hosts as root."),
    ("app.py", "It fails in ~/src/app.py:42"),
    ("1247.50", "It cost $1,247.50, he said"),
    ("v2.3.1", "Shipped v2.3.1 today."),
    ("2.3.1", "Shipped v2.3.1 today."),
    ("10.0.0.1:8080", "Listens on 10.0.0.1:8080."),
    ("10.0.0.1", "Listens on 10.0.0.1:8080."),
    ("invoice", "Two invoices on Monday"),
    ("invoices", "One invoice on Monday"),
    ("Maria", "Maria's dog barks"),
    ("O'Brien", "Talk to O’Brien."),
    ("obrien", "Talk to O'Brien."),
    ("AT&T", "She left AT&T."),
    ("C++", "He writes C++."),
    ("C#", "She prefers C#, though"),
    (".NET", "A .NET service"),
    ("@bob", "ping @bob!"),
    ("bob", "ping @bob!"),
    ("#launch", "all about #launch"),
    ("🍕", "Friday is 🍕day"),
    ("it", "it"),
    ("to be or not to be", "To be, or not to be"),
    ("成语", "今天玩成语接龙游戏"),
    ("今", "今天玩成语接龙游戏"),
    ("オ", "オを見た"),
    ("끝말잇기", "한국어 오늘 끝말잇기 게임을 했다"),
    ("成語", "今日は成語しりとりをした"),
    ("ABC", "ＡＢＣ agency"),
    ("ＡＢＣ", "abc agency"),
    ("istanbul", "İstanbul in spring"),
    ("İstanbul", "istanbul in spring"),
    ("cafe\u0301", "the caf\u00e9"),
    ("cafe", "the caf\u00e9"),
    ("550e8400-e29b-41d4-a716-446655440000", "trace 550e8400-e29b-41d4-a716-446655440000"),
    ("email", "an e-mail"),
    ("USA", "the U.S.A."),
]


@pytest.mark.parametrize(("cue", "text"), IN_TEXTS)
async def test_a_cue_finds_the_text_first(index: LexicalIndex, cue: str, text: str) -> None:
    await fill(index, *FILLER, text)
    assert (await found(index, cue, text, *FILLER))[0] == text


@pytest.mark.parametrize("cue", ["ACME-1247", "diego@corp.example", "v2.3.1", "/etc/hosts", "10.0.0.1:8080"])
async def test_an_exact_id_confirms_however_common(index: LexicalIndex, cue: str) -> None:
    await fill(index, *(f"{text}, see {cue}." for text in FILLER))
    reply = await ask(index, f"what about {cue}?")
    assert len(reply.items) == len(FILLER)
    assert all(reply.confirmed)


@pytest.mark.parametrize("cue", ["@bob", "AT&T", "C++", "O'Brien", "zorblax", "成语", "🍕", "zorblax gardens"])
async def test_what_is_rare_confirms(index: LexicalIndex, cue: str) -> None:
    await fill(index, *FILLER, f"once there was {cue} in it")
    reply = await ask(index, cue)
    assert reply.items[0] == an_id(f"once there was {cue} in it")
    assert reply.confirmed[0]
    assert not any(reply.confirmed[1:])


async def test_the_parts_of_an_id_apart_do_not_confirm(index: LexicalIndex) -> None:
    whole, apart = "ticket ACME-1247 is open", "ACME sold 1247 boxes"
    await fill(index, *FILLER, whole, apart)
    reply = await ask(index, "ACME-1247")
    assert reply.items == (an_id(whole), an_id(apart))
    assert reply.confirmed == (True, False)
    assert reply.evidence[0] == 1.0
    assert reply.evidence[1] < 0.6


@pytest.mark.parametrize("cue", ["meeting", "gardens rivers", "the", "meeting zorblax"])
async def test_common_words_never_confirm(index: LexicalIndex, cue: str) -> None:
    await fill(index, *FILLER)
    assert not any((await ask(index, cue)).confirmed)


async def test_stop_words_count_only_when_there_is_nothing_else(index: LexicalIndex) -> None:
    await fill(index, "what is the plan", "budget 2024")
    assert await found(index, "what is the budget", "what is the plan", "budget 2024") == ["budget 2024"]
    assert await found(index, "what is the", "what is the plan", "budget 2024") == ["what is the plan"]


@pytest.mark.parametrize(
    ("cue", "finds"),
    [
        ("/b testing", True),
        ("testing AND", True),
        ("testing NOT plain", True),
        ('"unbalanced testing', True),
        ("[testing TO", True),
        ("text:testing^2~", True),
        ("id:1", False),
        ("a AND", False),
        ("(", False),
        ("*", False),
        ("te*", False),
        ("[x TO", False),
        ("\\", False),
        ("", False),
        ("   \n", False),
        ("\u0301", False),
        ("550e8400-e29b-41d4-a716-446655440000", False),
    ],
)
async def test_nothing_in_a_cue_is_syntax(index: LexicalIndex, cue: str, finds: bool) -> None:
    await fill(index, "plain testing", *FILLER)
    assert ("plain testing" in await found(index, cue, "plain testing")) is finds


async def test_a_star_matches_nothing(index: LexicalIndex) -> None:
    await fill(index, *FILLER)
    assert (await ask(index, "*")).items == ()


async def test_statements_are_items_of_their_memory(index: LexicalIndex) -> None:
    await index.apply(entries(record("hello there", statements=2)))
    reply = await ask(index, "Search")
    assert reply.items == (f"{an_id('hello there')}#s1",)
    assert (reply.kinds, reply.labels) == (("statement",), ("Diego works at Search",))
    assert reply.sources == ((an_id("hello there"),),)


async def test_a_new_version_replaces_text_and_statements(index: LexicalIndex) -> None:
    await index.apply(entries(record("old words", key="k", statements=2)))
    await index.apply(entries(record("new words", key="k", statements=1), start=2))
    assert (await ask(index, "old Search")).items == ()
    assert set((await ask(index, "new Billing")).items) == {an_id("k"), f"{an_id('k')}#s0"}


async def test_the_last_record_of_a_batch_wins(index: LexicalIndex) -> None:
    await index.apply(entries(record("old", key="k"), record("new", key="k")))
    assert (await ask(index, "old new")).items == (an_id("k"),)
    assert (await ask(index, "old")).items == ()


async def test_a_forgotten_memory_never_returns(index: LexicalIndex) -> None:
    await index.apply(entries(record("secret", statements=2), record("other")))
    await index.apply(entries(record("secret", gone=True), start=3))
    assert (await ask(index, "secret Diego Billing")).items == ()
    await fill(index, *FILLER)
    assert (await ask(index, "secret Diego Search")).items == ()


async def test_a_forgotten_memory_may_come_back(index: LexicalIndex) -> None:
    await index.apply(entries(record("secret")))
    await index.apply(entries(record("secret", gone=True), start=2))
    await index.apply(entries(record("secret"), start=3))
    assert (await ask(index, "secret")).items == (an_id("secret"),)


@pytest.mark.parametrize("soft_first", [False, True])
async def test_a_hard_forget_leaves_no_byte_in_the_files(index: LexicalIndex, tmp_path: Path, soft_first: bool) -> None:
    await fill(index, "the swordfish password", *(f"ordinary text {number}" for number in range(20)))
    gone = record("the swordfish password", gone=True)
    assert gone.tombstone is not None
    hard = gone.model_copy(update={"text": "", "tombstone": gone.tombstone.model_copy(update={"mode": "hard"})})
    assert files_with(tmp_path, b"swordfish")
    await index.apply(entries(*([gone] if soft_first else []), hard, start=100))
    assert files_with(tmp_path, b"swordfish") == []
    assert len((await ask(index, "ordinary text")).items) == 20
    await index.apply(entries(record("the swordfish password"), start=110))
    assert (await ask(index, "swordfish")).items == (an_id("the swordfish password"),)


def files_with(folder: Path, secret: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


async def test_forgetting_what_was_never_there_is_harmless(index: LexicalIndex) -> None:
    await index.apply(entries(record("secret", gone=True)))
    assert index.position == 1
    assert (await ask(index, "secret")).items == ()


async def test_applying_twice_is_applying_once(index: LexicalIndex) -> None:
    batch = entries(*(record(text, statements=1) for text in FILLER), record(FILLER[3], gone=True))
    await index.apply(batch)
    once = await ask(index, "quiet number 7 Diego")
    await index.apply(batch)
    assert await ask(index, "quiet number 7 Diego") == once


async def test_a_restart_keeps_position_and_results(make: Make) -> None:
    first = make()
    await first.apply(entries(*(record(text) for text in FILLER), start=100))
    before = await ask(first, "quiet number 7")
    await first.close()
    second = make()
    assert second.position == 100 + len(FILLER) - 1
    assert await ask(second, "quiet number 7") == before


async def test_killed_before_the_position_was_stored_it_catches_up(make: Make, tmp_path: Path) -> None:
    first = make()
    await fill(first, *FILLER[:10])
    stale = (tmp_path / "index" / "position.json").read_bytes()
    await fill(first, *FILLER[10:])
    before = await ask(first, "quiet number 7")
    await first.close()
    (tmp_path / "index" / "position.json").write_bytes(stale)
    second = make()
    assert second.position == 10
    await fill(second, *FILLER[10:])
    assert await ask(second, "quiet number 7") == before


async def test_projects_share_neither_items_nor_statistics(index: LexicalIndex) -> None:
    await index.apply(entries(*(record(text) for text in ("rare word", *FILLER))))
    alone = await ask(index, "rare meeting")
    await index.apply(entries(*(record(f"rare {n}", project="q") for n in range(20)), start=100))
    assert (await ask(index, "rare meeting")).scores == alone.scores
    assert (await ask(index, "rare meeting")).evidence == alone.evidence
    assert (await ask(index, "meeting", project="q")).items == ()
    assert (await ask(index, "meeting", project="P")).items == ()


async def test_no_more_than_asked_for_and_ties_by_item_id(index: LexicalIndex) -> None:
    await index.apply(entries(*(record("same words", key=str(n)) for n in range(40))))
    expected = sorted(an_id(str(n)) for n in range(40))
    assert list((await ask(index, "same words", top_n=7)).items) == expected[:7]
    assert list((await ask(index, "same words", top_n=5000)).items) == expected
    assert (await ask(index, "same words", top_n=0)).items == ()


async def test_an_empty_index_answers_with_nothing(index: LexicalIndex) -> None:
    assert index.position == 0
    assert await ask(index, "anything") == LaneReply()
    assert (await index.score(ScoreQuery(project="p", cue="x", ids=(an_id("x"),)))).evidence == (0.0,)
    await index.apply([])
    assert index.position == 0


async def test_a_memory_without_words_is_kept_and_never_found(index: LexicalIndex) -> None:
    await fill(index, "...", "words")
    assert (await ask(index, "...")).items == ()
    assert (await ask(index, "words")).items == (an_id("words"),)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Whoosh leaves the damaged file open
@pytest.mark.parametrize("damage", ["garbage", "format", "no position"])
async def test_an_unreadable_directory_is_rebuilt_from_the_start(make: Make, tmp_path: Path, damage: str) -> None:
    first = make()
    await fill(first, *FILLER)
    await first.close()
    path = tmp_path / "index"
    if damage == "garbage":
        for file in (path / "projects").rglob("*"):
            if file.is_file():
                file.write_bytes(b"not an index")
    elif damage == "format":
        (path / "position.json").write_text('{"format": 0, "engine": "whoosh", "position": 30}')
    else:
        (path / "position.json").unlink()
    second = make()
    assert second.position == 0
    assert (await ask(second, "meeting")).items == ()
    await fill(second, *FILLER)
    assert len((await ask(second, "meeting")).items) == len(FILLER)


async def test_evidence_is_low_for_nonsense_and_1_for_the_text_itself(index: LexicalIndex) -> None:
    text = "Diego's team meets at 10.0.0.1:8080 — 今天玩成语接龙游戏 — for long-term C++ work, isn't it?"
    await fill(index, text, *FILLER)
    assert (await ask(index, text)).evidence[0] == pytest.approx(1.0)
    reply = await ask(index, "meeting zorblax quuxly frobnicate")
    assert reply.items
    assert max(reply.evidence) < 0.2


async def test_scoring_given_memories_agrees_with_searching(index: LexicalIndex) -> None:
    await index.apply(entries(record("zorblax", statements=2), *(record(text) for text in FILLER)))
    ids = (an_id("missing"), an_id("zorblax"), an_id(FILLER[0]))
    reply = await index.score(ScoreQuery(project="p", cue="Diego Search", ids=ids))
    assert reply.evidence == (0.0, pytest.approx(1.0), 0.0)
    assert reply.confirmed == (False, True, False)
    unknown = await index.score(ScoreQuery(project="nobody", cue="Diego", ids=ids))
    assert unknown.evidence == (0.0, 0.0, 0.0)


async def test_a_pasted_page_is_a_cue_like_any_other(index: LexicalIndex) -> None:
    page = " ".join(f"word{number}" for number in range(3000))
    await fill(index, page, "x" * 5000, *FILLER)
    assert (await ask(index, page)).items[0] == an_id(page)
    assert (await ask(index, "x" * 5000)).items == (an_id("x" * 5000),)


async def test_many_commits_lose_and_double_nothing(index: LexicalIndex) -> None:
    for number in range(40):
        await fill(index, f"entry {number} common", f"again {number % 5}")
    items = (await ask(index, "common", top_n=500)).items
    assert len(items) == len(set(items)) == 40
    assert len((await ask(index, "again", top_n=500)).items) == 5


async def test_both_engines_find_the_same(tmp_path: Path) -> None:
    pytest.importorskip("tantivy", reason="compares with the optional engine 'tantivy'")
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices("abcdeo", k=rng.randint(2, 5))) for _ in range(200)] + ["A-1", "成语接龙", "it"]
    texts = [" ".join(rng.choices(vocabulary, k=8)) for _ in range(300)]
    sides = [LexicalIndex(tmp_path / name, name) for name in ("whoosh", "tantivy")]
    for side in sides:
        await side.apply(entries(*(record(text, statements=1) for text in texts)))
        await side.apply(entries(*(record(text, gone=True) for text in texts[::7]), start=1000))
    for _ in range(40):
        cue = " ".join(rng.choices(vocabulary, k=3))
        one, two = [dict.fromkeys((await ask(side, cue, top_n=1000)).items) for side in sides]
        assert one.keys() == two.keys()
    for side in sides:
        await side.close()
