"""Our tables beside LangGraph's `store` table, and the triggers that note every change to it.

Nothing here alters what LangGraph's own stores read: a plain SqliteStore or PostgresStore opens the same
record, and what it writes is noted and indexed by us later.

- mem_spaces: one row per namespace, with the size of what is indexed in it (BM25's and the planner's numbers).
- mem_items: one row per item of the record, with its state. The rows that are not `IN_CHROMA` are the
  intent log: a trigger sets CHANGED or GONE in the transaction of the write itself. WORDED are those of which a
  store without an embedder has indexed the words; the next one with an embedder does the rest.
- mem_postings, mem_vectors: the two legs. A vector row's id is `space * SPACE + item`, so that a
  namespace's vectors lie side by side.
"""

import uuid

from memory.errors import NewerVersion
from memory.sql import Database, Session, Sqlite

VERSION = 1
CHANGED, DERIVED, IN_CHROMA, GONE, WORDED = 0, 1, 2, 3, 4
SPACE = 2**36

_TABLES = """
CREATE TABLE IF NOT EXISTS mem_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS mem_spaces (
    id {serial}, prefix TEXT NOT NULL UNIQUE,
    documents INTEGER NOT NULL DEFAULT 0, terms BIGINT NOT NULL DEFAULT 0, vectors INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS mem_items (
    id {serial}, space BIGINT NOT NULL, key TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0, paths TEXT,
    terms TEXT NOT NULL DEFAULT '', length INTEGER NOT NULL DEFAULT 0,
    parts INTEGER NOT NULL DEFAULT 0, in_chroma INTEGER NOT NULL DEFAULT 0,
    UNIQUE (space, key)
);
CREATE INDEX IF NOT EXISTS mem_due ON mem_items (state, id) WHERE state <> 2;
CREATE TABLE IF NOT EXISTS mem_postings (
    space BIGINT NOT NULL, term TEXT NOT NULL, item BIGINT NOT NULL,
    count INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY (space, term, item)
) {clustered};
CREATE TABLE IF NOT EXISTS mem_vectors (id {key} PRIMARY KEY, vectors {blob} NOT NULL);
"""

_SQLITE = {
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "key": "INTEGER",
    "blob": "BLOB",
    "clustered": "WITHOUT ROWID",
}
_POSTGRES = {
    "serial": "BIGSERIAL PRIMARY KEY",
    "key": "BIGINT",
    "blob": "BYTEA",
    "clustered": "",
}

# No ON CONFLICT here: inside a trigger SQLite lets the outer statement's policy override it.
_SQLITE_NOTE = """
    INSERT INTO mem_spaces (prefix) SELECT new.prefix
        WHERE NOT EXISTS (SELECT 1 FROM mem_spaces WHERE prefix = new.prefix);
    UPDATE mem_items SET state = 0, revision = revision + 1
        WHERE space = (SELECT id FROM mem_spaces WHERE prefix = new.prefix) AND key = new.key;
    INSERT INTO mem_items (space, key) SELECT id, new.key FROM mem_spaces
        WHERE prefix = new.prefix AND NOT EXISTS
        (SELECT 1 FROM mem_items WHERE space = mem_spaces.id AND key = new.key);
"""
_SQLITE_TRIGGERS = (
    f"CREATE TRIGGER IF NOT EXISTS mem_added AFTER INSERT ON store BEGIN {_SQLITE_NOTE} END",
    f"CREATE TRIGGER IF NOT EXISTS mem_changed AFTER UPDATE OF value ON store BEGIN {_SQLITE_NOTE} END",
    """CREATE TRIGGER IF NOT EXISTS mem_removed AFTER DELETE ON store BEGIN
        UPDATE mem_items SET state = 3, revision = revision + 1
            WHERE space = (SELECT id FROM mem_spaces WHERE prefix = old.prefix) AND key = old.key;
    END""",
)
_POSTGRES_TRIGGERS = (
    """CREATE OR REPLACE FUNCTION mem_note() RETURNS trigger AS $$ BEGIN
        IF TG_OP = 'DELETE' THEN
            UPDATE mem_items SET state = 3, revision = revision + 1
                WHERE space = (SELECT id FROM mem_spaces WHERE prefix = OLD.prefix) AND key = OLD.key;
            RETURN NULL;
        END IF;
        INSERT INTO mem_spaces (prefix) VALUES (NEW.prefix) ON CONFLICT DO NOTHING;
        INSERT INTO mem_items (space, key) SELECT id, NEW.key FROM mem_spaces WHERE prefix = NEW.prefix
            ON CONFLICT (space, key) DO UPDATE SET state = 0, revision = mem_items.revision + 1;
        RETURN NULL;
    END $$ LANGUAGE plpgsql""",
    """CREATE OR REPLACE TRIGGER mem_noted AFTER INSERT OR DELETE OR UPDATE OF value ON store
        FOR EACH ROW EXECUTE FUNCTION mem_note()""",
    'CREATE INDEX IF NOT EXISTS mem_prefix ON mem_spaces (prefix COLLATE "C")',
    # LangGraph's column counts whole minutes; its own statements work on fractions as well.
    "ALTER TABLE store ALTER COLUMN ttl_minutes TYPE DOUBLE PRECISION",
    "ALTER TABLE mem_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL",
)


def prepare(db: Database) -> None:
    """Create or check the tables. Raises NewerVersion, with the record untouched, if a later version wrote it."""
    with db.reading() as session:
        version = _version(session, db)
    if version > VERSION:
        raise NewerVersion(
            f"{db.name} was written by a newer Palimpsest (format {version}, this one knows {VERSION}); "
            "update Palimpsest"
        )
    if version < VERSION:
        db.create()
        with db.writing() as session:
            if _version(session, db) < VERSION:
                _create(session, sqlite=isinstance(db, Sqlite))


def _version(session: Session, db: Database) -> int:
    sqlite = "SELECT 1 FROM sqlite_master WHERE name = 'mem_meta'"
    postgres = "SELECT 1 WHERE to_regclass('mem_meta') IS NOT NULL"
    if not session.run(sqlite if isinstance(db, Sqlite) else postgres):
        return 0
    return int(get_meta(session, "version") or 0)


def _create(session: Session, *, sqlite: bool) -> None:
    tables = _TABLES.format(**(_SQLITE if sqlite else _POSTGRES))
    for statement in (*tables.split(";")[:-1], *(_SQLITE_TRIGGERS if sqlite else _POSTGRES_TRIGGERS)):
        session.run(statement)
    note_all(session)
    set_meta(session, "record", uuid.uuid4().hex)
    set_meta(session, "version", str(VERSION))


def note_all(session: Session) -> None:
    """Note every item of the record as changed, and every other as gone."""
    session.run(
        "INSERT INTO mem_spaces (prefix) SELECT DISTINCT prefix FROM store "
        "WHERE prefix NOT IN (SELECT prefix FROM mem_spaces)"
    )
    session.run("UPDATE mem_items SET state = 3, revision = revision + 1")
    session.run(
        "INSERT INTO mem_items (space, key) SELECT p.id, s.key FROM store s "
        "JOIN mem_spaces p ON p.prefix = s.prefix WHERE true ORDER BY s.created_at, s.prefix, s.key "
        "ON CONFLICT (space, key) DO UPDATE SET state = 0, revision = mem_items.revision + 1"
    )


def get_meta(session: Session, name: str) -> str | None:
    """Read one of the record's own notes."""
    rows = session.run("SELECT value FROM mem_meta WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else None


def set_meta(session: Session, name: str, value: str) -> None:
    """Write one of the record's own notes."""
    session.run(
        "INSERT INTO mem_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
