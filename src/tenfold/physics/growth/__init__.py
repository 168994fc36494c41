"""Growth: utilisation of a layer as a function of the growth factor."""
