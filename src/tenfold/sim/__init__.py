"""World one: virtual time, generated or recorded facts, and hands that take time."""
