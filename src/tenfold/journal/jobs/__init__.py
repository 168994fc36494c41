"""The jobs of a journal: those that ended as a trace, and all of them with their demand."""
