"""The live world: real time, real requests, real processes.

Belongs here: the executor contract and the executors, attempts, acceptance tests, discovery of
this machine, usage measurements, nodes of a running Slurm, tasks on Ray, several sites at once
(sites), rented nodes (providers).
Does not belong here: decisions (decide) or HTTP (server).
"""
