"""`tenfold objects`: commands that change, check and show storage tiers."""
