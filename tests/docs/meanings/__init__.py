"""What each key that people write or read means, in a few words.

Types, bounds and defaults come from the code; only the meaning is written here. A test
fails where a key has no meaning or a meaning has no key.
"""

from docs.meanings.estimate_answers import ESTIMATE_ANSWER_KEYS
from docs.meanings.estimate_rows import ESTIMATE_KEYS
from docs.meanings.fleet_file import FLEET_KEYS, FLEET_TABLES
from docs.meanings.grow_file import GROW_KEYS, GROW_TABLES, GROW_TAKES, MEASURED
from docs.meanings.hardware_facts import HARDWARE_FACT_KEYS
from docs.meanings.money_answers import MONEY_ANSWER_KEYS
from docs.meanings.software_facts import SOFTWARE_FACT_KEYS

__all__ = [
    "ANSWER_KEYS",
    "ESTIMATE_KEYS",
    "FACT_KEYS",
    "FLEET_KEYS",
    "FLEET_TABLES",
    "GROW_KEYS",
    "GROW_TABLES",
    "GROW_TAKES",
    "MEASURED",
]

FACT_KEYS = {**HARDWARE_FACT_KEYS, **SOFTWARE_FACT_KEYS}
ANSWER_KEYS = {**ESTIMATE_ANSWER_KEYS, **MONEY_ANSWER_KEYS}
