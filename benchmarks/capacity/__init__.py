"""Capacity plans executed against what came."""
