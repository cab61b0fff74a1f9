"""Fixtures that several test folders share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from contracts.client import MemoryClient
from tests.stack import Stack

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One running service for all tests that do it no harm."""
    with Stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


@pytest.fixture
async def memory(stack: Stack) -> AsyncIterator[MemoryClient]:
    """A client on a project that nobody has used."""
    async with MemoryClient(stack.url, project=f"test-{next(_numbers)}") as client:
        yield client
