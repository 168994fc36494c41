"""What `tenfold grow` says about fleets made from seeds, against truths written apart from it.

Nothing here imports the laws, the simulator or the failure model under test: answers come from
closed forms and from the simulators of this folder, and Tenfold is asked by its command line.
"""
