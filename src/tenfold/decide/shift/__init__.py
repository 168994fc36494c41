"""When a job that can wait should come: hours in which energy is clean or cheap."""
