"""`tenfold plan`: parallelism for training, replicas for serving."""
