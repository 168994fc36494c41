"""Free capacity by rack, leaf and pod: gangs placed close together, rack power limits."""
