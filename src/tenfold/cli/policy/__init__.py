"""`tenfold policy`: check, show and preview policies, and read a shadow run."""
