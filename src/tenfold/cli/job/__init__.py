"""`tenfold job`: submit, list, cancel and explain jobs, live or in a recorded run.

`live*.py` talks to a control plane and prints its jobs; `render.py` prints recorded runs and `why`.
"""
