"""The log of the gateway: one line per event, as text or JSON, without secrets.

Nothing that a client sent is logged. As a second guard, whatever looks like a token is redacted
and control characters are escaped.
"""

import logging
import re
import sys
from datetime import UTC, datetime

import msgspec

from tenfold.report.visible import visible, visible_line

NAMES = ("tenfold", "aiohttp", "asyncio")
_SECRET = re.compile(r"tf_[A-Za-z0-9_-]{8,}|(?i:bearer)\s+\S+|sk-[A-Za-z0-9_-]{8,}")
REDACTED = "***"


class _Lines(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": _SECRET.sub(REDACTED, record.getMessage()),
        }
        if record.exc_info:
            line["trace"] = _SECRET.sub(REDACTED, self.formatException(record.exc_info))
        if self._as_json:
            return visible(msgspec.json.encode(line).decode())
        return visible_line(" ".join(line.values()))


def log_to_stderr(*, as_json: bool) -> None:
    """Send the log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(as_json=as_json))
    logging.raiseExceptions = False
    for name in NAMES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
