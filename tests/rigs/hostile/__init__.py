"""What attacks are made of: hostile values, requests for every field, and a raw connection."""
