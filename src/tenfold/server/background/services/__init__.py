"""The controller of services: what it waits for, and what it tells the loop and gateways."""
