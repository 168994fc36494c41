"""Plans for training and serving on a fleet, and what drives the next purchase."""
