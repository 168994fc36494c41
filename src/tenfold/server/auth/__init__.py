"""Roles, tokens, redaction of other teams' data, isolation of teams on this machine."""
