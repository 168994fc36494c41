"""What growth costs: prices by unit, and the monthly cost of a fleet."""
