"""The same jobs under several policies, fleets and seeds."""
