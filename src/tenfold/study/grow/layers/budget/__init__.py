"""Budget: money, and what comes too late."""
