"""Ray: run jobs on a Ray cluster. `driver` is the only module here that imports Ray."""
