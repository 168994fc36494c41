"""Reading TOML, YAML, JSON lines and Parquet with line numbers; atomic writes.

Every reader uses it.
"""
