"""Types of jobs: spec, submission, scheduling terms, workloads, usage, attempt failures."""
