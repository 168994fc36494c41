"""Build-out: what to buy, reserve and rent, month by month, as a linear program and its checks."""
