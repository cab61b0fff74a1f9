"""Public question sets as documents and questions. The files are read, never shipped."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from contracts import wire
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest
from infra.readers import Format, project_name, read

_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True, slots=True)
class Document:
    """What is stored. `key` is what judgements call it, unique within its project."""

    project: str
    key: str
    request: EncodeRequest


@dataclass(frozen=True, slots=True)
class Question:
    """`relevant` maps keys of documents to gains. `strangers` are questions to which `project` has no answer."""

    project: str
    text: str
    category: str
    relevant: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Stranger:
    """A question asked of a project that cannot answer it. `named` says that it names people whom the project knows."""

    project: str
    text: str
    named: bool


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    documents: list[Document]
    questions: list[Question]
    strangers: list[Stranger] = field(default_factory=list)

    def halves(self) -> tuple[set[str], set[str]]:
        """The projects in two halves: choose on one, report both."""
        projects = sorted({question.project for question in self.questions})
        return set(projects[::2]), set(projects[1::2])


def load(name: str, path: Path) -> QuestionSet:
    """Raises InvalidRequest for an unknown set, and for files that are missing or not of that set."""
    if name not in LOADERS:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"no question set {name!r}; there are {', '.join(LOADERS)}")
    try:
        return LOADERS[name](path)
    except OSError as error:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot read {error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{path} is not {name}: {error!r}") from None


def locomo(path: Path) -> QuestionSet:
    """Turns as memories, a project a conversation. Evidence ids are cleaned (``D30:05`` is D30:5), dangling ones
    dropped, questions without evidence left out. Every question is also asked of the next conversation, as it stands
    and with its speakers' names swapped for that one's."""
    samples = orjson.loads(path.read_bytes())
    prefix = "locomo-"
    documents = [
        Document(f"{prefix}{item.project}", str(item.request.metadata["dia_id"]), item.request)
        for item in read(path, Format.LOCOMO)
    ]
    known: dict[str, set[str]] = {}
    for document in documents:
        known.setdefault(document.project, set()).add(document.key)
    questions, strangers = [], []
    for number, sample in enumerate(samples):
        project, other = (prefix + project_name(one["sample_id"]) for one in (sample, samples[number - 1]))
        names = dict(zip(_speakers(sample), _speakers(samples[number - 1]), strict=True))
        for qa in sample["qa"]:
            found = {f"D{int(s)}:{int(t)}" for raw in qa.get("evidence", []) for s, t in _EVIDENCE.findall(str(raw))}
            if evidence := found & known[project]:
                category = _LOCOMO_CATEGORIES[qa["category"]]
                questions.append(Question(project, qa["question"], category, dict.fromkeys(sorted(evidence), 1.0)))
                if other != project:
                    swapped = _swapped(qa["question"], names)
                    strangers += [Stranger(other, qa["question"], False), Stranger(other, swapped, True)]
    return QuestionSet("locomo", documents, questions, strangers)


def scifact(path: Path) -> QuestionSet:
    """BEIR SciFact: a folder with `corpus.jsonl`, `queries*.jsonl` and `qrels*.tsv`; abstracts as memories, title
    first."""
    documents = [
        Document("scifact", str(row["_id"]), _text(f"{row['title']} {row['text']}", f"scifact:{row['_id']}"))
        for row in _lines(path / "corpus.jsonl")
    ]
    texts = {str(row["_id"]): row["text"] for file in sorted(path.glob("queries*.jsonl")) for row in _lines(file)}
    relevant: dict[str, dict[str, float]] = {}
    for file in sorted(path.glob("qrels*.tsv")):
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                if float(row["score"]) > 0:
                    relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    questions = [Question("scifact", texts[number], "claim", gains) for number, gains in relevant.items()]
    return QuestionSet("scifact", documents, questions)


def hotpotqa(path: Path) -> QuestionSet:
    """HotpotQA, distractor setting: the paragraphs of all questions pooled in one project, two gold ones a question."""
    documents: dict[str, Document] = {}
    questions = []
    for row in _lines(path):
        for title, sentences in row["context"]:
            request = _text(f"{title}. {''.join(sentences)}", f"hotpotqa:{title}")
            documents.setdefault(title, Document("hotpotqa", title, request))
        gold = dict.fromkeys(sorted({title for title, _ in row["supporting_facts"]}), 1.0)
        questions.append(Question("hotpotqa", row["question"], row.get("type", "bridge"), gold))
    return QuestionSet("hotpotqa", list(documents.values()), questions)


def _speakers(sample: dict[str, Any]) -> tuple[str, str]:
    talk = sample["conversation"]
    return talk["speaker_a"], talk["speaker_b"]


def _swapped(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


def _text(text: str, request_id: str) -> EncodeRequest:
    return wire.validate(EncodeRequest, {"text": text, "request_id": request_id[:128], "kind": "Semantic"})


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


LOADERS: dict[str, Callable[[Path], QuestionSet]] = {"locomo": locomo, "scifact": scifact, "hotpotqa": hotpotqa}
