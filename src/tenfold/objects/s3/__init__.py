"""The S3 protocol: requests, signatures, operations, answers and errors."""
