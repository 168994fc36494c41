"""`tenfold gateway`: the command group of the inference gateway."""
