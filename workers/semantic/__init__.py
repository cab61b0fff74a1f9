"""The semantic lane: cosine over memories and statements, one HNSW graph a project."""

from workers.semantic.index import SemanticIndex

__all__ = ["SemanticIndex"]
