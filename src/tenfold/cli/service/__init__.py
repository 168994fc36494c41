"""`tenfold service`: deploy, show, scale and roll out services."""
