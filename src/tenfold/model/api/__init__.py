"""The HTTP API: what is sent and what is answered, for the server and both clients.

Answers pass over keys that they do not know, so that an older client understands a newer control
plane; a field that is added later has a default, so that a newer client understands an older one.
Bodies of requests refuse unknown keys: a misspelt one would be ignored in silence.
Times are ISO 8601 in UTC.
"""
