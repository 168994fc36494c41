"""Jobs: what admits them, how long they wait, and what they lose."""
