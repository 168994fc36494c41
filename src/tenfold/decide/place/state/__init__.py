"""State that the governed policy keeps between passes, and tentative changes to it."""
