"""Public scale tests of Kueue and KAI, run through our loop."""
