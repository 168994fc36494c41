"""Members of a gang: users, limits, containers, becoming the process of the job."""
