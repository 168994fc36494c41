"""Services: how they are shown, and which registered model they serve."""
