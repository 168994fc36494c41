"""How many replicas a service needs: a pure decision that sim and live share."""
