"""`tenfold journal`: inspect, verify, back up and compact a journal."""
