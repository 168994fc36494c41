"""Types of facts: rows with sources, the catalogue, failure rates, model shapes, grid intensity."""
