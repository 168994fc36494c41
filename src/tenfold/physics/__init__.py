"""What it takes: pure estimates from a description and the facts.

No files, no clock, no randomness; arrays in, arrays out where there are many.
"""
