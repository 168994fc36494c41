"""`tenfold offers`: what to rent, from whom, and what leaving would cost."""
