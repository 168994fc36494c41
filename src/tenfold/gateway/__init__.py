"""The inference front door: an HTTP gateway in front of the replicas of services.

Belongs here: who may use a service and how much of it (`admit`), which replica answers
(`route`, pure), what is known of replicas now (`pool`), forwarding and streaming (`forward`),
the process and its addresses (`serve`).
Does not belong here: starting, stopping and placing replicas, or deciding how many there are.
"""
