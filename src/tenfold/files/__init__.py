"""Every file format that Tenfold reads or writes.

Belongs here: parsing and validation with file, line and field; fleet, policy, job and growth
files, traces, exports of Slurm and Kubernetes, prices, model configs, launch files.
Does not belong here: what the values mean (model) or what to do with them (study). A reader
returns records of model and findings, or raises one `InputError`.
"""
