"""Charts as SVG without scripts, and for the terminal."""
