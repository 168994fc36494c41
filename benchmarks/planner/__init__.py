"""What the planner predicts against what was published and measured."""
