"""One module per resource of the HTTP API. Add a route here and list it in `app.py`."""
