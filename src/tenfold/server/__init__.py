"""The HTTP API of the control plane.

Belongs here: routes, authentication and redaction (auth), metrics and traces (metrics), threads
next to the loop (background), startup, shutdown and limits (runtime).
Does not belong here: request and response types (model/api), decisions (decide), SQL (journal).
"""
