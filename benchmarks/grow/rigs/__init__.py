"""Real things that are loaded until they break, and what was said before of where they do."""
