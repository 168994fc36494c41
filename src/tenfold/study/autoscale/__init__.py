"""How a service fares under an autoscaler: requests met, replica-hours."""
