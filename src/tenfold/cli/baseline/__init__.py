"""`tenfold baseline`: record how fast a workload runs, and compare later runs with it."""
