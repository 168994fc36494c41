"""Prometheus metrics and OpenTelemetry traces of requests, cycles and jobs."""
