"""`tenfold replay`: verify a recorded run, or run it again under another policy."""
