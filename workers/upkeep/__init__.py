"""The upkeep role: topic clusters over a project's memories, and their summaries."""

from workers.upkeep.worker import UpkeepWorker

__all__ = ["UpkeepWorker"]
