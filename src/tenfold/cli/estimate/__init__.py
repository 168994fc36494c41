"""`tenfold estimate`: time, memory and cost of given configurations."""
