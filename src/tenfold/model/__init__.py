"""The nouns: frozen records, ids, units, errors and reasons.

Belongs here: types that several rooms share: fleet, job, policy, facts, growth, api; events
(past tense) and actions (imperative).
Does not belong here: I/O, clocks, randomness, or anything longer than a property of a record.
"""
