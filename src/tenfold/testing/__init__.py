"""What tests are made of: builders that read aloud, random small worlds, and laws to hold to."""
