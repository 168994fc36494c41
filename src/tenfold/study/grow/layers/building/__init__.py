"""The building: power of sites and racks, cooling, switch ports and floor."""
