"""One module per group of S3 operations: each function answers one kind of request."""
