"""The graph lane: entities, relations and memories in a Bolt store, Neo4j 5 or the embedded one."""
