"""World two: what runs and stands in the real world. Today it finds what is there (discovery)."""
