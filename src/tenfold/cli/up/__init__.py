"""`tenfold up`: start the control plane of this machine."""
