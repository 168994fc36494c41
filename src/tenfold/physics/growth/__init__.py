"""What growth does to a layer: laws of strain, and where they break."""
