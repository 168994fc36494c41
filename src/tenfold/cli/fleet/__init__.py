"""`tenfold fleet`.

Check, show, import and merge fleet files; failure domains, idle GPUs, ceilings.
"""
