"""Service files, and the bodies of deployments."""
