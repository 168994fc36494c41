"""What governed placement owes teams, worked out the slow way and checked at every cycle."""
