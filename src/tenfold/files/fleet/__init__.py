"""Fleet files: read, fill in defaults, check, build, write, merge."""
