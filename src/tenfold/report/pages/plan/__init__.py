"""The HTML report of a plan."""
