-- One row a memory; `doc` is its contracts.catalog.Row as JSON, less what other memories say of it.
CREATE TABLE IF NOT EXISTS memory (
    project TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, created INTEGER NOT NULL,
    kind TEXT NOT NULL, session TEXT, live INTEGER NOT NULL, doc BLOB NOT NULL, event INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_session ON memory (project, session, event, created, position)
    WHERE session IS NOT NULL AND live;
CREATE INDEX IF NOT EXISTS memory_created ON memory (project, created, id);

-- Which memory names which as superseded, and the event time of the one that does.
CREATE TABLE IF NOT EXISTS supersession (
    project TEXT NOT NULL, target TEXT NOT NULL, source TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (project, target, source)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS supersession_source ON supersession (project, source);

-- Statements by what they are about. Rows outlive their memory's tombstone: forgetting the newest value of a
-- statement does not revive the one before it.
CREATE TABLE IF NOT EXISTS statement (
    project TEXT NOT NULL, memory TEXT NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL,
    predicate TEXT NOT NULL, object TEXT NOT NULL, single INTEGER NOT NULL, since INTEGER NOT NULL,
    created INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (project, memory, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS statement_slot ON statement (project, subject, predicate, since, created, position);

-- Names by normal form, once for every memory that mentions one.
CREATE TABLE IF NOT EXISTS name (
    project TEXT NOT NULL, name TEXT NOT NULL, memory TEXT NOT NULL, canonical TEXT NOT NULL, type TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (project, name, memory)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS name_memory ON name (project, memory);

CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
