"""What breaks first when demand or the fleet grows, and what breaks next."""
