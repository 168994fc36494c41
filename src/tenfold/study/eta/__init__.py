"""When a pending job will start: P50 and P90, from simulation and past waits."""
