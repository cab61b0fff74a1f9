"""The connection to a graph database: reads with a time limit, writes with bounded retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import anyio
from neo4j import READ_ACCESS, AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, Query
from neo4j.exceptions import ConstraintError, DatabaseError, Neo4jError, TransientError

T = TypeVar("T")
Row = dict[str, Any]

ATTEMPTS = 12  #: tries of one write that others get in the way of
FIRST_DELAY_S = 0.02
LONGEST_DELAY_S = 0.5
PATIENCE_S = 30.0  #: for a statement that no caller waits for


class Bolt:
    """One database of one server, through the official driver."""

    def __init__(self, driver: AsyncDriver, database: str) -> None:
        self._driver, self._database = driver, database

    @classmethod
    async def connect(cls, uri: str, user: str, password: str, database: str) -> Self:
        """Raises what the driver raises when the server is away or refuses the password."""
        driver = AsyncGraphDatabase.driver(
            uri,
            auth=(user, password),
            initial_retry_delay=FIRST_DELAY_S,  # the default of a second is long for a deadlock of milliseconds
            notifications_min_severity="OFF",
            telemetry_disabled=True,
        )
        bolt = cls(driver, database)
        try:
            await bolt.read("RETURN 1 AS one", PATIENCE_S)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await driver.close()
            raise
        return bolt

    async def close(self) -> None:
        await self._driver.close()

    async def read(self, text: str, limit_s: float, **parameters: Any) -> list[Row]:
        """The rows of one query. `limit_s` binds a Neo4j server; the embedded one has a limit of its own."""
        async with self._driver.session(database=self._database, default_access_mode=READ_ACCESS) as session:
            result = await session.run(Query(text, timeout=limit_s), parameters)
            return await result.data()

    async def write(self, work: Callable[[AsyncManagedTransaction], Awaitable[T]]) -> T:
        """Run a managed transaction, again when other writers got in its way; `work` may run many times.

        The driver retries deadlocks by itself. Two writers that make the same node, and a writer that meets a
        remover, it does not.
        """
        delay_s = FIRST_DELAY_S
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._write_once(work)
            except Neo4jError as error:
                if not _passing(error):
                    raise
            await anyio.sleep(delay_s)
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
        return await self._write_once(work)

    async def _write_once(self, work: Callable[[AsyncManagedTransaction], Awaitable[T]]) -> T:
        async with self._driver.session(database=self._database) as session:
            return await session.execute_write(work)


def _passing(error: Neo4jError) -> bool:
    code = error.code or ""
    return isinstance(error, ConstraintError | TransientError | DatabaseError) or code.endswith("EntityNotFound")


async def rows_of(tx: AsyncManagedTransaction, text: str, **parameters: Any) -> list[Row]:
    result = await tx.run(text, parameters)
    return await result.data()
