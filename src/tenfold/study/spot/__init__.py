"""What a job with a deadline costs on spot and on-demand capacity."""
