"""One role a process: encode, embed, semantic, lexical, graph, rerank, catalog. `python -m workers ROLE` runs one."""
