"""Why a job is pending, and the cheapest change that would start it."""
