"""What `tenfold grow` says breaks first, against what is planted, measured and published."""
