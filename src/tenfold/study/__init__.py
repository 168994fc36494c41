"""Answers to questions, one folder per topic: each command of the CLI asks one of these.

Belongs here: what joins deciders, simulation and physics into an answer: plan, estimate, grow,
ceiling, advise, sim, compare, govern, why, eta, replay, bench.
Does not belong here: parsing (files), printing (cli, report), wiring (compose).
"""
