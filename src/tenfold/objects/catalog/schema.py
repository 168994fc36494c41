"""The tables of the catalogue."""

import sqlite3
from pathlib import Path

CATALOG_FILE = "catalog.db"
VERSION = 1
BUSY_S = 30.0
CACHE_KIB = 65_536
MAP_BYTES = 1 << 30

TABLES = """
CREATE TABLE IF NOT EXISTS buckets(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  team TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  versioning TEXT NOT NULL,
  settings TEXT NOT NULL,
  stored_bytes INTEGER NOT NULL DEFAULT 0,
  stored_versions INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS buckets_by_team ON buckets(team, name);
CREATE TABLE IF NOT EXISTS versions(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  version TEXT NOT NULL,
  is_current INTEGER NOT NULL,
  is_marker INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  etag TEXT NOT NULL,
  modified_ms INTEGER NOT NULL,
  storage_class TEXT NOT NULL,
  record TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS versions_by_key ON versions(bucket, key, seq DESC);
CREATE INDEX IF NOT EXISTS versions_listed ON versions(bucket, key)
  WHERE is_current = 1 AND is_marker = 0;
CREATE TABLE IF NOT EXISTS uploads(
  id TEXT PRIMARY KEY,
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  started_ms INTEGER NOT NULL,
  record TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS uploads_by_key ON uploads(bucket, key, id);
CREATE TABLE IF NOT EXISTS parts(
  upload TEXT NOT NULL,
  number INTEGER NOT NULL,
  part TEXT NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT;
CREATE TABLE IF NOT EXISTS completed(
  upload TEXT PRIMARY KEY,
  bucket INTEGER NOT NULL,
  key TEXT NOT NULL,
  version TEXT NOT NULL,
  etag TEXT NOT NULL,
  completed_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS dead_blobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  due_ms INTEGER NOT NULL,
  ref TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS dead_blobs_by_due ON dead_blobs(due_ms);
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection that never loses a committed change."""
    connection = sqlite3.connect(
        path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA mmap_size = {MAP_BYTES}")
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a catalogue that may be in use, without changing it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make what is missing; a catalogue of a newer Tenfold is refused."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise ValueError(f"the catalogue has format {found}; this Tenfold reads up to {VERSION}")
    connection.executescript(f"BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {VERSION};COMMIT;")
