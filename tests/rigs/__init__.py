"""Random worlds, the laws they are held to, and disks that lose writes."""
