"""The Python client: typed calls to a control plane, plain and async."""
