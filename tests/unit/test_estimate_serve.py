"""The contract of `estimate serve`: order, notes, nulls, and rows that cannot be."""

import msgspec
import pytest

from benchmarks.planner.serving_rows import PUBLISHED, read_published, rate_error, served, tables_of
from tenfold.compose.estimate_serve import Answer, estimate_serve
from tenfold.facts.loader import load_catalogue
from tenfold.files.estimate_rows import ServeRow

CATALOGUE = load_catalogue()
