"""The server log: one JSON object per line, without tokens.

All log records go through one formatter, which redacts whatever looks like a token: in messages,
arguments and tracebacks.
"""

import logging
import re
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import msgspec

from tenfold.report.visible import visible
from tenfold.server.schemas import iso

SECRET = re.compile(r"tf_[A-Za-z0-9_-]{8,}")
REDACTED = "tf_***"
FILE_BYTES_MAX = 16 << 20
FILES_KEPT = 5
FIELDS = "fields"
"""The key under which a logger call passes its own fields: `extra={"fields": {...}}`."""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with tokens redacted."""
        line: dict[str, Any] = {
            "at": iso(round(record.created * 1_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        # JSON escapes control characters below 32 only.
        return visible(without_tokens(msgspec.json.encode(line, enc_hook=str).decode()))


def without_tokens(text: str) -> str:
    """Return a text with everything that looks like a token redacted."""
    return SECRET.sub(REDACTED, text)


def log_to(path: Path | None) -> logging.Handler:
    """Send the server log to a file that only its owner can read, or to standard error."""
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        path.touch(mode=0o600)
        handler = RotatingFileHandler(
            path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8"
        )
    handler.setFormatter(JsonLines())
    # On a full disk a line is lost; a traceback on the terminal for each would not help.
    logging.raiseExceptions = False
    for name in ("tenfold", "uvicorn", "litestar", "opentelemetry", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    # `requests.py` logs every request, with the caller and without the query.
    logging.getLogger("uvicorn.access").disabled = True
    return handler
