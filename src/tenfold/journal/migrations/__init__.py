"""How the tables of a journal came to be what they are, one revision after the other."""
