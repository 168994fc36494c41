"""The object server beside nginx, a real Ceph and a real SeaweedFS."""
