"""The gateway process: addresses, requests as they arrive, errors, metrics, and its end."""
