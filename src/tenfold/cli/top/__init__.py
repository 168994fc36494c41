"""`tenfold top`: the fleet, the queue, jobs and alarms on one screen that refreshes itself.

Belongs here: the command, the screen and what it reads. `textual` is an optional extra and is
imported only by `screen`.
"""
