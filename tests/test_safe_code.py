"""What our code never does with data: build objects or code of it, or put it into the text of a query."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUNTIME = sorted(
    path for part in ("contracts", "orchestrator", "workers", "infra") for path in (ROOT / part).rglob("*.py")
)

#: Modules that turn bytes into objects of any class, or text into a command.
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "jsonpickle",
           "code", "codeop", "xmlrpc"}  # fmt: skip
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {("yaml", "load"), ("os", "system"), ("os", "popen"), ("torch", "load"), ("pickle", "loads")}
KEYWORDS = {"allow_pickle", "shell", "trust_remote_code"}


def faults(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (f"import {one.name}" for one in names if one.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield f"from {module}"
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield f"{name}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if (owner, name) in METHODS:
                yield f"{owner}.{name}()"
            case ast.keyword(arg=str(name), value=ast.Constant(value=True)) if name in KEYWORDS:
                yield f"{name}=True"


def test_there_is_code_to_look_at() -> None:
    assert len(RUNTIME) > 150


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: str(path.relative_to(ROOT)))
def test_data_never_becomes_code(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text("utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    ["import pickle", "from marshal import loads", "import yaml", "eval(x)", "exec(x)", "compile(x)", "os.system(x)",
     "np.load(f, allow_pickle=True)", "subprocess.run(x, shell=True)", "torch.load(f)", "from joblib import load"],
)  # fmt: skip
def test_the_search_finds_it(code: str) -> None:
    assert list(faults(ast.parse(code)))


# --- Cypher: texts are constants of workers/graph/cypher.py, put together of nothing but constants; values are parameters.

GRAPH = sorted((ROOT / "workers" / "graph").glob("*.py"))
#: What runs a query, and which of its arguments is the text.
RUNNERS = {"read": 0, "run": 0, "Query": 0, "rows_of": 1}


def constants(tree: ast.Module) -> set[str]:
    """Names bound once, at the top of a module, to a text of constants."""
    known: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and constant(node.value, known):
            known.add(node.targets[0].id)
    return known


def constant(node: ast.expr, known: set[str]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in known
        case ast.Tuple(elts=parts):
            return all(constant(part, known) for part in parts)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[parts]):
            return constant(parts, known)
    return False


def unsafe(tree: ast.Module, texts: set[str]) -> Iterator[str]:
    """Queries that are run with another text than a constant, or than what a function of ours was handed."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        handed = {arg.arg for arg in ast.walk(function) if isinstance(arg, ast.arg)}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in RUNNERS and len(call.args) > RUNNERS[name]:
                text = call.args[RUNNERS[name]]
                if not _fixed(text, texts, handed):
                    yield ast.unparse(text)


def _fixed(text: ast.expr, texts: set[str], handed: set[str]) -> bool:
    match text:
        case ast.Constant(value=str()):
            return True
        case ast.Attribute(value=ast.Name(id="cypher"), attr=name):
            return name in texts
        case ast.Name(id=name):
            return name in handed
        case ast.IfExp(body=one, orelse=other):
            return _fixed(one, texts, handed) and _fixed(other, texts, handed)
        case ast.Call(func=ast.Name(id="Query"), args=[inner, *_]):
            return _fixed(inner, texts, handed)
    return False


def test_cypher_is_made_of_constants() -> None:
    tree = ast.parse((ROOT / "workers" / "graph" / "cypher.py").read_text("utf-8"))
    assigned = {node.targets[0].id for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}  # fmt: skip
    assert len(assigned) > 20
    assert assigned == constants(tree)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.BinOp | ast.FunctionDef)]


@pytest.mark.parametrize("path", GRAPH, ids=lambda path: path.name)
def test_cypher_is_run_with_constants_and_parameters(path: Path) -> None:
    texts = constants(ast.parse((ROOT / "workers" / "graph" / "cypher.py").read_text("utf-8")))
    assert list(unsafe(ast.parse(path.read_text("utf-8")), texts)) == []


@pytest.mark.parametrize("path", [path for path in GRAPH if path.name != "cypher.py"], ids=lambda path: path.name)
def test_no_other_module_holds_cypher(path: Path) -> None:
    words = ("MATCH (", "MERGE (", "UNWIND ", "CREATE (", "DETACH ")
    texts = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
    assert not [text for text in texts if any(word in text for word in words)]


@pytest.mark.parametrize(
    "code",
    ["async def f(self, x): await self._bolt.read(f'MATCH (n {{id: {x}}})', 1)",
     "async def f(tx, x): await tx.run('MATCH (n) ' + x)",
     "async def f(tx, x): await tx.run('MATCH (n) %s' % x)",
     "async def f(tx, x): await tx.run('MATCH (n) {}'.format(x))",
     "async def f(tx):\n    query = build()\n    await tx.run(query)",
     "async def f(tx): await rows_of(tx, cypher.MADE_UP)"],
)  # fmt: skip
def test_the_search_finds_cypher_with_values_in_it(code: str) -> None:
    assert list(unsafe(ast.parse(code), {"POSITION"}))
