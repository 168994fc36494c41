"""The HTTP API of the control plane: who may ask for what, and what is answered."""
