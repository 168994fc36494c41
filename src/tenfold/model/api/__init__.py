"""The requests and responses of the HTTP API, shared by the server and both clients.

Responses ignore unknown keys, so that an older client understands a newer control plane; a field
added later has a default, so that a newer client understands an older one. Request bodies reject
unknown keys: a misspelt one would be ignored silently. Times are ISO 8601 in UTC.
"""
