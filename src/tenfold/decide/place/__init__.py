"""Which job runs where, and since when: order, placement, preemption."""
