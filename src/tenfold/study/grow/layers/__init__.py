"""Growth layers, one class per file; `study/grow/registry.py` lists them. Add a layer here."""
