"""The upkeep role: topic clusters over a project's memories, and their summaries."""

from workers.upkeep.index import TopicIndex
from workers.upkeep.worker import UpkeepWorker

__all__ = ["TopicIndex", "UpkeepWorker"]
