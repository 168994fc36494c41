"""`tenfold capacity`: how demand grows."""
