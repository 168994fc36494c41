"""How every reason reads: one entry for each code, and the renderer."""
