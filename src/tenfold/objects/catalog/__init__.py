"""What the object store knows: buckets, keys, versions, uploads and parts, in SQLite."""
