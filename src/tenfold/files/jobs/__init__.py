"""Job files and submissions, and resource profiles of jobs."""
