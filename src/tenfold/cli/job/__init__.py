"""`tenfold job`: submit, list, cancel and explain jobs, live or in a recorded run."""
