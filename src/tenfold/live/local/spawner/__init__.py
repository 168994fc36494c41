"""The spawner process: forks supervisors, talks to the control plane, reaps orphans."""
