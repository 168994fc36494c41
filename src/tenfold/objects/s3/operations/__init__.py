"""One module per group of S3 operations: each function answers one kind of request.

Add an operation here and list it in `s3/routes.py`, with the query name that selects it.
"""
