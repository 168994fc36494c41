"""One fleet over several engines: an executor whose nodes belong to the engines of their sites."""
