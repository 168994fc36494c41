"""`tenfold assess`: how a cluster is used today, what breaks first, and what would help."""
