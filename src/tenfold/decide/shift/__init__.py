"""Time shifting: start deferrable jobs in hours with clean or cheap power."""
