"""Tests, and the rigs that benchmarks share with them."""
