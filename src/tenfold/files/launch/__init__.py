"""Plans written as the files that start them: one module for each format.

A format that cannot say all of a plan refuses it. A launch file that quietly left out
a degree of parallelism would run, and train something else.
"""
