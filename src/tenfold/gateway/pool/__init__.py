"""What a gateway knows of services now: replicas, revisions, queues and counters.

It is replaced in parts by each new routing state; requests in replicas are kept.
"""
