"""Recovery: which nodes to cordon because jobs keep failing on them."""
