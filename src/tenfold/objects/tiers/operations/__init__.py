"""What operators do to tiers while clients read and write: each can be stopped and run again.

Belongs here: drain, replace, rebalance, scrub, rebuild. Every one goes over the live blobs of the
catalogue and moves those that are not as they should be, so an interrupted one continues by itself.
"""
