"""Placement: which job runs where and when. README.md draws one scheduling pass."""
