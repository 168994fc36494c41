"""Who sends a request: Signature Version 4 in headers, in URLs, in chunks and in forms."""
