"""`tenfold sim`: simulate, compare, generate and import."""
