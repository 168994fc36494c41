"""`tenfold node`: list, cordon, drain and test nodes."""
