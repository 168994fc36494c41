"""`tenfold model`: the model registry."""
