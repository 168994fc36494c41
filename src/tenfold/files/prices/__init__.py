"""prices."""
