"""Services: where their requests go, the load that they make, and how many replicas are wanted."""
