"""What running takes beside computing: failures, feeding, energy and money."""
