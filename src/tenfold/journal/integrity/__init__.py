"""What finds damage: the digest chain over events, its head in a file, and sums of read tables.

None of it uses a key: it finds accidents and manual edits, not someone who can write everything.
"""
