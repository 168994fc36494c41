"""Compare what a fast tier should hold: cost against all-flash, waiting time against LRU."""
