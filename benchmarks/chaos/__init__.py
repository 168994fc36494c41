"""Kill everything that can be killed, while real jobs run, and see what is left."""
