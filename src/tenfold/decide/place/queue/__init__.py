"""Queue: pending jobs by class, fair share order, admission, reserved windows."""
