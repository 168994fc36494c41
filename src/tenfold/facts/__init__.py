"""Numbers about the world, each with its source, and the loader that makes a Catalogue.

A new accelerator, link, model or price is a row in a TOML file, never code.
"""
