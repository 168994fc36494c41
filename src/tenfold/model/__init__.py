"""The nouns of the system: frozen records, ids, units, errors and reasons.

Nothing here reads a file, a clock or a random number.
"""
