"""`tenfold attach`: a cluster that another scheduler runs, as a journal."""
