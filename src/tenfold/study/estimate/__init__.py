"""Estimates for given configurations: training, serving, caches, money, federated training."""
