"""One module per command group: parse, call, print."""
