"""The fabric: uplinks, spines, and links between sites."""
