"""`tenfold objects`: serve objects, manage access keys, and show what is stored."""
