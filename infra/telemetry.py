"""Structured logs: one JSON event a line on stderr, lower case, facts in fields."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.tracebacks import ExceptionDictTransformer


def configure(level: str, role: str) -> None:
    """Set up structlog for this process and bind its role. Standard-library loggers go the same way, warnings up."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Without locals: they hold texts and passwords.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(role=role)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    hush()


def hush() -> None:
    """Keep silent what asyncio says whenever an encrypted link ends: nobody can act on it."""
    logging.getLogger("asyncio").addFilter(lambda record: "eof_received" not in record.getMessage())
