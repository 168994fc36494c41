"""Side-by-side measurements and their thresholds; `./dev bench [name]` runs them."""
