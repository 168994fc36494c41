"""Growth layers: one class per file, with shared helpers next to them. Add a layer here.

`study/grow/registry.py` lists them in the order in which they are shown.
"""
