"""The encode role: checks, extracts, embeds and appends; by request and from the ingest queue."""

from workers.encode.worker import EncodeWorker

__all__ = ["EncodeWorker"]
