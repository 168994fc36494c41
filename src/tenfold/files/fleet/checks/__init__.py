"""Checks of a fleet file: names, references, places, trees of domains and teams."""
