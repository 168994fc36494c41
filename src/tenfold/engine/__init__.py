"""The control loop that simulation and the live control plane share.

Belongs here: the loop itself, recording, replay, shadow runs, digests, and explanations that
hold for every decider.
Does not belong here: any particular decider (decide) or world (sim, live), or any I/O.
"""
