-- One row a memory; `doc` is its contracts.catalog.Row as JSON, less what other memories say of it.
CREATE TABLE IF NOT EXISTS memory (
    project TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, created INTEGER NOT NULL,
    kind TEXT NOT NULL, session TEXT, live INTEGER NOT NULL, doc BLOB NOT NULL, event INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_session ON memory (project, session, event, created, position)
    WHERE session IS NOT NULL AND live;
CREATE INDEX IF NOT EXISTS memory_created ON memory (project, created, id);

-- Where each live memory of all shards stands in its session, so that any shard knows who was said beside whom.
CREATE TABLE IF NOT EXISTS place (
    project TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, event INTEGER NOT NULL, created INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS place_session ON place (project, session, event, created, position, id);

CREATE INDEX IF NOT EXISTS memory_event ON memory (project, event, id) WHERE live;

-- Sources and tags of live memories, for queries that filter by them.
CREATE TABLE IF NOT EXISTS label (
    project TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, memory TEXT NOT NULL,
    PRIMARY KEY (project, name, value, memory)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS label_memory ON label (project, memory);

-- How often a memory of this shard was of use, by day since 1970 (UTC); `last` is when on that day it last was, in epoch
-- ms, NULL where uses were only taken back. Comes from the stream of uses, whose position meta holds as `uses`.
CREATE TABLE IF NOT EXISTS used (
    project TEXT NOT NULL, memory TEXT NOT NULL, day INTEGER NOT NULL, count INTEGER NOT NULL, last INTEGER,
    PRIMARY KEY (project, memory, day)
) WITHOUT ROWID;

-- Which memory names which as superseded; the event time of the one that does, and when it was written.
CREATE TABLE IF NOT EXISTS supersession (
    project TEXT NOT NULL, target TEXT NOT NULL, source TEXT NOT NULL, at INTEGER NOT NULL, written INTEGER NOT NULL,
    PRIMARY KEY (project, target, source)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS supersession_source ON supersession (project, source);

-- Statements (numbered from 0) and relations (from -1 downwards) by what they are about. `since` and `until` bound
-- their validity in epoch ms; `dated` says that the caller gave `since`; `created` is the memory's, which
-- later states of it keep. Rows outlive their memory's tombstone (`live` is 0 then):
-- forgetting the newest value of a slot, which is a hash of subject and predicate, does not revive the one before it.
-- Of a hard-forgotten memory only its slots are left.
CREATE TABLE IF NOT EXISTS statement (
    project TEXT NOT NULL, memory TEXT NOT NULL, number INTEGER NOT NULL, slot TEXT NOT NULL, subject TEXT NOT NULL,
    predicate TEXT NOT NULL, object TEXT NOT NULL, single INTEGER NOT NULL, since INTEGER NOT NULL,
    dated INTEGER NOT NULL, until INTEGER, confidence REAL NOT NULL, live INTEGER NOT NULL, created INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (project, memory, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS statement_slot ON statement (project, slot, since, created, position);
CREATE INDEX IF NOT EXISTS statement_subject ON statement (project, subject, predicate);
CREATE INDEX IF NOT EXISTS statement_object ON statement (project, object, predicate);

-- Names by normal form, once for every memory that mentions one.
CREATE TABLE IF NOT EXISTS name (
    project TEXT NOT NULL, name TEXT NOT NULL, memory TEXT NOT NULL, canonical TEXT NOT NULL, type TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (project, name, memory)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS name_memory ON name (project, memory);

CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
