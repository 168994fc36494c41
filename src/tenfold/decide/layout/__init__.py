"""Choose a layout: how a model is spread over accelerators, and how many it should have."""
