"""The sum of the read tables: the checksums of their rows, added up.

A write changes the sum by the rows that it adds and removes. A sum that differs from the rows means
that something other than an event changed them. A CRC is enough for that: these tables are derived,
and a change of a row is missed once in four billion.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any
from zlib import crc32

import msgspec
from sqlalchemy import Connection, Table, Update, bindparam, select, update
from sqlalchemy.exc import OperationalError

from tenfold.journal.tables import (
    ATTEMPTS,
    CHAIN,
    JOBS,
    MODEL_ALIASES,
    MODEL_CHANGES,
    MODEL_VERSIONS,
    NODES,
    SUBMIT_KEYS,
)

READ_TABLES = (JOBS, ATTEMPTS, NODES, SUBMIT_KEYS, MODEL_VERSIONS, MODEL_ALIASES, MODEL_CHANGES)
MASK = (1 << 62) - 1
"""Sums are below this, so that two of them fit in a signed 64-bit column."""
ROWS_AHEAD = 1_000
_FACTOR = 0x9E3779B97F4A7C15

_ENCODE = msgspec.json.Encoder(enc_hook=repr).encode


def digest_of(table: Table, values: Sequence[Any]) -> int:
    """Return what a row, in the order of its columns, adds to the sum."""
    return _spread(crc32(_ENCODE(values), _seed(table)))


def sum_of_values(table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
    """Return what rows that are about to be written add to the sum."""
    get, seed, total = _getter(table), _seed(table), 0
    for row in rows:
        check = crc32(_ENCODE(get(row)), seed)
        total += check * _FACTOR + check * check & MASK
    return total


def sum_of_tables(connection: Connection) -> int:
    """Return the sum of the rows that are there; -1 if a text in them is not valid."""
    total = 0
    try:
        for table in READ_TABLES:
            ahead = select(table).execution_options(stream_results=True, max_row_buffer=ROWS_AHEAD)
            for row in connection.execute(ahead):
                total += digest_of(table, tuple(row))
    except OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        return -1
    return total & MASK


def add_to_sum(connection: Connection, change: int) -> None:
    """Change the sum, in the transaction that changed the rows."""
    connection.execute(_ADDED, {"change": change & MASK})


def _spread(check: int) -> int:
    """Spread a CRC over the sum, so that changes of two rows do not cancel out easily."""
    return check * _FACTOR + check * check & MASK


@cache
def _getter(table: Table) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    return itemgetter(*(column.name for column in table.columns))


@cache
def _seed(table: Table) -> int:
    return crc32(table.name.encode())


_CHANGE = bindparam("change", type_=CHAIN.c.tables.type)
_ADDED: Update = update(CHAIN).values(tables=(CHAIN.c.tables + _CHANGE).bitwise_and(MASK))
