"""What a service needs next: its replicas, its rollout, and where gateways send requests."""
