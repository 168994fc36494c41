"""How figures look: numbers in words, tables, maps and pictures."""
