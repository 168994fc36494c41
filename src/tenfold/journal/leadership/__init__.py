"""Who may write a journal: the leader's lease and epoch, and the control planes that share it."""
