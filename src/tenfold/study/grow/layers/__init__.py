"""The layers of growth, one class in one file each; `study/grow/registry.py` lists them."""
