"""The one set of Cypher texts, valid in Neo4j 5 (from 5.23) and in ArcadeDB. Values come as parameters only.

(:Memory {key, project, id, slot, at, live, forms, form_of, begins, ends})   slot: its shard among the most there may be
(:Entity {key, project, name, type, mentions, recent})   recent: the newest mentions, as ``at|memory id``
(:Name {key})-[:NAMES {uses}]->(:Entity)                 further names; uses counts the memories that assert it
(:Memory)-[:MENTIONS]->(:Entity)
(:Entity)-[:RELATES {id, type, memory, at, project, statement}]->(:Entity)
(:Memory)-[:EDGE {kind, weight}]->(:Memory)              the target may be a placeholder: live is false
(:Position {key, applied})                               moved in the transaction that holds the effect

A memory keeps in forms/form_of and begins/ends what it asserted, as neither store finds a relationship by property
fast enough. An entity keeps its newest mentions, as sorting thousands of them on every search is too slow.
"""

from __future__ import annotations

SCHEMA = (
    "CREATE CONSTRAINT memory_key IF NOT EXISTS FOR (m:Memory) REQUIRE m.key IS UNIQUE",
    "CREATE CONSTRAINT entity_key IF NOT EXISTS FOR (e:Entity) REQUIRE e.key IS UNIQUE",
    "CREATE CONSTRAINT name_key IF NOT EXISTS FOR (n:Name) REQUIRE n.key IS UNIQUE",
    "CREATE CONSTRAINT position_key IF NOT EXISTS FOR (p:Position) REQUIRE p.key IS UNIQUE",
    "CREATE INDEX memory_slot IF NOT EXISTS FOR (m:Memory) ON (m.slot)",
)

# --- positions

POSITIONS = "MATCH (p:Position) RETURN p.key AS key, p.applied AS applied"

#: The SET comes before anything is read, so that two writers of one shard queue up, or one of them must retry.
HOLD_POSITION = """
MERGE (p:Position {key: $key}) ON CREATE SET p.applied = 0
SET p.touched = $to
RETURN p.applied AS applied"""

MOVE_POSITION = "MATCH (p:Position {key: $key}) SET p.applied = $to"
RESET_POSITION = "MERGE (p:Position {key: $key}) SET p.applied = 0"

# --- writing

OF_SHARD = "MATCH (m:Memory) WHERE m.slot IN $slots RETURN m.key AS key LIMIT $most"

ASSERTED = """
UNWIND $rows AS key
MATCH (m:Memory {key: key})
OPTIONAL MATCH (m)-[:MENTIONS]->(e:Entity)
WITH m, collect(e.key) AS entities
OPTIONAL MATCH (m)-[:EDGE]->(t:Memory)
WITH m, entities, collect(t.key) AS targets
RETURN m.key AS key, m.id AS id, entities, targets,
       m.forms AS forms, m.form_of AS form_of, m.begins AS begins, m.ends AS ends"""

HOLD_ENTITIES = """
UNWIND $rows AS row
MERGE (e:Entity {key: row.key}) ON CREATE SET e.project = row.project, e.mentions = 0, e.recent = []
SET e.touched = row.to
RETURN e.key AS key, e.mentions AS mentions, e.recent AS recent, e.type AS type, e.name AS name"""

DROP_MENTIONS = "UNWIND $rows AS key MATCH (m:Memory {key: key})-[x:MENTIONS]->(:Entity) DELETE x"
DROP_EDGES = "UNWIND $rows AS key MATCH (m:Memory {key: key})-[x:EDGE]->(:Memory) DELETE x"
DROP_LINKS = """
UNWIND $rows AS row
MATCH (e:Entity {key: row.end})
MATCH (e)-[r:RELATES]-(:Entity) WHERE r.memory = row.memory
WITH DISTINCT r DELETE r"""

WRITE_MEMORIES = "UNWIND $rows AS row MERGE (m:Memory {key: row.key}) SET m += row"
WRITE_MENTIONS = """
UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MATCH (e:Entity {key: row.entity})
CREATE (m)-[:MENTIONS]->(e)"""
WRITE_LINKS = """
UNWIND $rows AS row
MATCH (a:Entity {key: row.source})
MATCH (b:Entity {key: row.target})
CREATE (a)-[:RELATES {id: row.id, type: row.type, memory: row.memory, at: row.at, project: row.project,
                      statement: row.statement}]->(b)"""
WRITE_EDGES = """
UNWIND $rows AS row
MATCH (m:Memory {key: row.memory})
MERGE (t:Memory {key: row.target}) ON CREATE SET t.live = false, t.project = row.project, t.id = row.id
CREATE (m)-[:EDGE {kind: row.kind, weight: row.weight}]->(t)"""

WRITE_NAMES = """
UNWIND $rows AS row
MERGE (n:Name {key: row.form})
SET n.touched = row.to
WITH n, row
MATCH (e:Entity {key: row.entity})
MERGE (n)-[r:NAMES]->(e) ON CREATE SET r.uses = 0
SET r.uses = r.uses + row.more"""
DROP_NAMINGS = "UNWIND $rows AS key MATCH (n:Name {key: key})-[r:NAMES]->(:Entity) WHERE r.uses <= 0 DELETE r"
DROP_NAMES = "UNWIND $rows AS key MATCH (n:Name {key: key}) WHERE NOT EXISTS { (n)-[:NAMES]->(:Entity) } DELETE n"

WRITE_ENTITIES = """
UNWIND $rows AS row
MATCH (e:Entity {key: row.key})
SET e.name = row.name, e.type = row.type, e.mentions = row.mentions, e.recent = row.recent"""
NEWEST = """
UNWIND $rows AS key
MATCH (e:Entity {key: key})
CALL (e) { MATCH (e)<-[:MENTIONS]-(m:Memory) RETURN m ORDER BY m.at DESC, m.id LIMIT $most }
RETURN key, m.at AS at, m.id AS id"""
DROP_ENTITIES = "UNWIND $rows AS key MATCH (e:Entity {key: key}) WHERE e.mentions = 0 DETACH DELETE e"

#: A forgotten memory that others still point at stays as a placeholder.
BURY = """
UNWIND $rows AS key
MATCH (m:Memory {key: key})
SET m.live = false, m.slot = null, m.at = null, m.forms = null, m.form_of = null, m.begins = null, m.ends = null"""
DROP_PLACEHOLDERS = """
UNWIND $rows AS key
MATCH (m:Memory {key: key}) WHERE m.live = false AND NOT EXISTS { (:Memory)-[:EDGE]->(m) }
DETACH DELETE m"""

# --- reading

ANCHORS = """
UNWIND $keys AS key
MATCH (e:Entity {key: key})
RETURN key AS form, e.key AS key, e.name AS name, e.mentions AS mentions, e.recent AS recent
UNION ALL
UNWIND $keys AS key
MATCH (n:Name {key: key})-[:NAMES]->(e:Entity)
RETURN key AS form, e.key AS key, e.name AS name, e.mentions AS mentions, e.recent AS recent"""

#: Links at an anchor, with the entity at the other end. A bounded stretch is read and then sorted: there may be many.
LINKS = """
UNWIND $anchors AS anchor
MATCH (e:Entity {key: anchor})
CALL (e) {
  MATCH (e)-[r:RELATES]-(o:Entity)
  WITH r, o LIMIT $stretch
  RETURN r, o ORDER BY r.at DESC, r.id, r.memory LIMIT $children
}
RETURN 'link' AS part, anchor AS anchor, '' AS via,
       [r.id, r.type, r.memory, startNode(r).name, endNode(r).name,
        o.key, o.name, o.mentions, o.recent[..$some]] AS row"""

#: Links from given neighbours of anchors onward.
FAR = """
UNWIND $through AS pair
MATCH (o:Entity {key: pair[1]})
CALL (o) {
  MATCH (o)-[r:RELATES]-(p:Entity) WHERE NOT p.key IN $anchors
  RETURN r, p ORDER BY r.at DESC, r.id, r.memory LIMIT $few
}
RETURN 'far' AS part, pair[0] AS anchor, o.key AS via,
       [r.id, r.type, r.memory, startNode(r).name, endNode(r).name,
        p.key, p.name, p.mentions, p.recent[..$few]] AS row"""

#: Memories that mention two anchors or more, found from every anchor but the commonest.
SHARED = """
UNWIND $rarer AS anchor
MATCH (e:Entity {key: anchor})<-[:MENTIONS]-(m:Memory)-[:MENTIONS]->(x:Entity) WHERE x.key IN $anchors
WITH anchor, m, collect(x.key) AS others
WITH anchor, m, others ORDER BY size(others) DESC, m.at DESC, m.id, anchor LIMIT $most
RETURN 'shared' AS part, anchor AS anchor, '' AS via, [m.id, others] AS row"""

#: The same among given memories, for anchors with too many to read.
CHECKED = """
UNWIND $checked AS key
MATCH (m:Memory {key: key})-[:MENTIONS]->(x:Entity) WHERE x.key IN $anchors
WITH m, collect(x.key) AS keys WHERE size(keys) > 1
RETURN 'shared' AS part, keys[0] AS anchor, '' AS via, [m.id, keys] AS row"""

#: Memories that an edge joins to the given ones.
JOINED = """
UNWIND $memories AS key
MATCH (m:Memory {key: key})
CALL (m) {
  MATCH (m)-[x:EDGE]-(t:Memory) WHERE t.live
  RETURN x, t ORDER BY t.at DESC, t.id LIMIT $some
}
RETURN 'joined' AS part, key AS anchor, '' AS via, [t.id, x.weight] AS row"""

WALK = " UNION ALL ".join((LINKS, SHARED, CHECKED, JOINED))

#: For given memories: the entities they mention, and the anchors that memories joined to them mention.
_MENTIONED = """
UNWIND $memories AS key
MATCH (m:Memory {key: key})-[:MENTIONS]->(x:Entity)
RETURN 'mentioned' AS part, key AS anchor, '' AS via, collect(x.key) AS row"""
_BESIDE = """
UNWIND $memories AS key
MATCH (m:Memory {key: key})-[:EDGE]-(t:Memory)-[:MENTIONS]->(x:Entity) WHERE x.key IN $anchors
RETURN 'beside' AS part, key AS anchor, '' AS via, collect(DISTINCT x.key) AS row"""

SCORE = " UNION ALL ".join((LINKS, _MENTIONED, _BESIDE))

#: Edges of given memories that memories of one shard assert. The heaviest first, as a hub may have thousands.
EDGES_OUT = """
UNWIND $keys AS key
MATCH (m:Memory {key: key}) WHERE m.slot % $of = $number
CALL (m) {
  MATCH (m)-[x:EDGE]->(t:Memory) WHERE x.kind IN $kinds
  RETURN x, t ORDER BY abs(x.weight) DESC, x.kind, t.id LIMIT $most
}
RETURN key, m.id AS source, x.kind AS kind, t.id AS target, x.weight AS weight"""
EDGES_IN = """
UNWIND $keys AS key
MATCH (m:Memory {key: key})
CALL (m) {
  MATCH (s:Memory)-[x:EDGE]->(m) WHERE s.slot % $of = $number AND x.kind IN $kinds
  RETURN x, s ORDER BY abs(x.weight) DESC, x.kind, s.id LIMIT $most
}
RETURN key, s.id AS source, x.kind AS kind, m.id AS target, x.weight AS weight"""
