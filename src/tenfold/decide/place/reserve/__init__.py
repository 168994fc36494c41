"""Reserve: start times reserved for blocked gangs, backfill before them, defragmentation."""
