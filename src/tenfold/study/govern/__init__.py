"""Governance: policies compared by team, entitlement, previews of a policy change."""
