"""What breaks first as demand or the fleet grows, and which fix to buy."""
