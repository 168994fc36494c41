"""Files of capacity planning: plan files, driver files, histories and Terraform JSON."""
