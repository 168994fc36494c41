"""Requests as bytes on a connection; benchmarks use them too."""

from tests.rigs.hostile.wire import Answer, Wire

__all__ = ["Answer", "Wire"]
