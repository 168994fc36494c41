"""HAProxy as the data plane: it answers what needs no decision, and the gateway all the rest.

What it serves is a plan made from the routing state; servers and maps follow it through the runtime
API, and only a change of structure reloads it.
"""
