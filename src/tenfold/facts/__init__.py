"""Published figures, each with its source and date, and the loader that makes a Catalogue.

Belongs here: TOML rows for accelerators, links, models, prices, failure rates, engines; loading
and checking them. A new accelerator or price is a row, never code.
Does not belong here: formulas (physics), or figures without a source.
"""
