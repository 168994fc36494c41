"""Types of growth questions: axes, limits, services, datasets, measured usage."""
