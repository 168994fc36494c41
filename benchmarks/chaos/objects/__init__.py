"""An object server that is killed, and whose tiers change, while clients read and write."""
