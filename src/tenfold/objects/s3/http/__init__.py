"""HTTP/1.1 for the object server: request heads, bodies, connections, and files that are sent."""
