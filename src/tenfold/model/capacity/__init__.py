"""Types of capacity planning: plan files, drivers, trigger rules and proposals."""
