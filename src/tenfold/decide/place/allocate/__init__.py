"""Allocate.

One session of a scheduling pass, starts on free and releasing capacity, elastic jobs.
"""
