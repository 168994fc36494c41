"""Providers: who rents out nodes, behind one contract. Add a provider here."""
