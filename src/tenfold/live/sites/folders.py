"""The folders of sites: each has its own attempts, and all share the folders of teams.

RUN/teams/TEAM/JOB/           where a job runs and saves, at whichever site
RUN/sites/SITE/               the folder of the executor of a site
RUN/sites/SITE/teams          a link to RUN/teams
RUN/sites/SITE/team-users.json    a link to RUN/team-users.json
"""

import os
from contextlib import suppress

from tenfold.live.local.attempt.folder import (
    TEAM_USERS,
    ExecutorDir,
    file_name,
    plain_name,
    private_folder,
)

SITES = "sites"


def site_home(run: str, site: str) -> str:
    """Return the folder of the executor of a site."""
    return f"{os.path.abspath(run)}/{SITES}/{file_name(site)}"


def prepare_site_home(run: str, site: str) -> str:
    """Create the folder of a site, with links to what sites share, and return it."""
    shared = ExecutorDir(run)
    shared.prepare()
    home = site_home(run, site)
    for folder in (os.path.dirname(home), home):
        private_folder(folder, shared.parent_mode())
    for name in ("teams", TEAM_USERS):
        with suppress(FileExistsError):
            os.symlink(f"../../{name}", f"{home}/{name}")
    return home


def all_homes(run: str) -> list[str]:
    """Return the folder of the one executor, and those of all sites that were ever used."""
    found = [os.path.abspath(run)]
    with suppress(FileNotFoundError, NotADirectoryError):
        found += [site_home(run, plain_name(name)) for name in sorted(os.listdir(f"{run}/{SITES}"))]
    return found
