"""The catalog: the one authority for text, metadata, tombstones, supersession and known names."""

from workers.catalog.store import CatalogStore
from workers.catalog.worker import CatalogWorker

__all__ = ["CatalogStore", "CatalogWorker"]
