"""Which user a name means: the one rule of every filter by user."""


def is_user(wanted: str, user: str | None) -> bool:
    """Return whether a name means a user: without `@`, it means that user on any machine.

    A control plane names local users with their machine, such as `ann@login1`.
    """
    if not user or "@" in wanted:
        return user == wanted
    return user.partition("@")[0] == wanted
