"""The server's own log: one JSON object a line, and never a token in it.

Whatever is logged, by whomever, passes through one formatter, and what looks like a token is
struck out there: from messages, from arguments, from traces.
"""

import logging
import re
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import msgspec

from tenfold.server.schemas import iso

SECRET = re.compile(r"tf_[A-Za-z0-9_-]{8,}")
REDACTED = "tf_***"
FILE_BYTES_MAX = 16 << 20
FILES_KEPT = 5
FIELDS = "fields"
"""The name under which a call to a logger hands over its own keys: `extra={"fields": {...}}`."""


class JsonLines(logging.Formatter):
    """Formats a record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a token."""
        line: dict[str, Any] = {
            "at": iso(round(record.created * 1_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return without_tokens(msgspec.json.encode(line, enc_hook=str).decode())


def without_tokens(text: str) -> str:
    """Return a text in which whatever looks like a token is struck out."""
    return SECRET.sub(REDACTED, text)


def log_to(path: Path | None) -> logging.Handler:
    """Send the log of the server to a file that only its owner reads, or to standard error."""
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        path.touch(mode=0o600)
        handler = RotatingFileHandler(
            path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8"
        )
    handler.setFormatter(JsonLines())
    # On a full disk a line is lost; a trace on the terminal for each of them would tell no more.
    logging.raiseExceptions = False
    for name in ("tenfold", "uvicorn", "litestar", "opentelemetry", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    # Every request is logged by `requests.py`, with who asked and without what they asked for.
    logging.getLogger("uvicorn.access").disabled = True
    return handler
