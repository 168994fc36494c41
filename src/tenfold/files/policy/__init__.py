"""Policy files: read, check, and fit to a fleet."""
