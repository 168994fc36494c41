"""Types of a described fleet: sites, pools, nodes, hardware, storage, facility, findings."""
