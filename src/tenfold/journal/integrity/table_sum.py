"""The sum of the read tables: the digests of their rows, added up.

A write changes the sum by the rows that it adds and removes. A sum that differs from the rows means
that something other than an event changed them.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, Update, bindparam, select, update
from sqlalchemy.exc import OperationalError

from tenfold.journal.tables import ATTEMPTS, CHAIN, JOBS, NODES, SUBMIT_KEYS

READ_TABLES = (JOBS, ATTEMPTS, NODES, SUBMIT_KEYS)
MASK = (1 << 62) - 1
"""Sums are below this, so that two of them fit in a signed 64-bit column."""
ROWS_AHEAD = 1_000

_ENCODE = msgspec.json.Encoder(enc_hook=repr).encode


def digest_of(table: Table, values: Iterable[Any]) -> int:
    """Return what a row, in the order of its columns, adds to the sum."""
    text = _ENCODE((table.name, *values))
    return int.from_bytes(blake2b(text, digest_size=8).digest()) & MASK


def digest_of_values(table: Table, values: Mapping[str, Any]) -> int:
    """Return what a row that is about to be written adds to the sum."""
    return digest_of(table, [values[name] for name in _names(table)])


def sum_of_tables(connection: Connection) -> int:
    """Return the sum of the rows that are there; -1 if a text in them is not valid."""
    total = 0
    ahead = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AHEAD)
    try:
        for table in READ_TABLES:
            for row in ahead.execute(select(table)):
                total += digest_of(table, row)
    except OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        return -1
    return total & MASK


def add_to_sum(connection: Connection, change: int) -> None:
    """Change the sum, in the transaction that changed the rows."""
    connection.execute(_ADDED, {"change": change & MASK})


@cache
def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def added() -> Any:
    """Return the SQL expression for the sum after a change."""
    return (CHAIN.c.tables + bindparam("change", type_=CHAIN.c.tables.type)).bitwise_and(MASK)


_ADDED: Update = update(CHAIN).values(tables=added())
