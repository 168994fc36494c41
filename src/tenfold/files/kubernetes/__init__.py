"""Nodes as `kubectl get nodes -o json` prints them."""
