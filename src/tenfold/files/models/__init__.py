"""Model shapes from HuggingFace configs."""
