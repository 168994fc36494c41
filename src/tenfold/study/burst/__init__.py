"""What renting nodes for late jobs costs, against only your own nodes and only rented ones."""
