"""Executors whose processes another system runs: Slurm, Ray.

`ExternalExecutor` obeys the executor contract for all of them; each system is an `Engine` of a few
calls. Attempts are folders on a file system that the nodes share, laid out as those of the local
executor, so logs, checkpoints and retention work alike.
"""
