"""Series over time: demand, spot capacity, and the requests of a service."""
