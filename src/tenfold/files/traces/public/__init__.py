"""Readers of public traces: Philly, Helios, Acme, Alibaba."""
