"""`tenfold facts`: figures about hardware, prices and models, with their sources."""
