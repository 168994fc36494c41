"""Names of the events in the history of a job, on screen."""

EVENTS = {
    "promised": "reserved",
    "unreserved": "reservation lost",
    "start-ordered": "scheduled",
    "order-refused": "action failed",
    "idled": "idle",
    "stop-ordered": "stopping",
    "idle-reclaimed": "reclaimed",
    "refused": "rejected",
}
"""Names of events on screen that differ from their codes in JSON."""


def event_name(code: str) -> str:
    """Return the name of an event."""
    return EVENTS.get(code, code)
