"""The Python client: typed calls to a control plane, blocking and async.

Belongs here: one coroutine per API operation (`operations.py`), the two transports, retries,
streams, and finding the address and token of a control plane.
Does not belong here: request and response types (model/api), which the server shares.
"""
