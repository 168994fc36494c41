"""Replicas of one service, request by request, under an autoscaler."""
