"""Real object stores for tests: a Ceph RADOS gateway and a SeaweedFS, each started on loopback."""
