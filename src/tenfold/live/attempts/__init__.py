"""Active attempts: what is known of each, how they begin and end, and how they are adopted."""
