"""The folders of a job: in its team's folder unless it names others."""

import os

from tenfold.live.local.attempt.folder import ExecutorDir, file_name, private_folder
from tenfold.live.local.attempt.open_folder import open_folder
from tenfold.live.local.member.user import acting_as
from tenfold.live.local.spawner.wire import LaunchLine


class JobFolders:
    """The folders of one attempt: team, working directory and checkpoints."""

    def __init__(self, home: ExecutorDir, launch: LaunchLine) -> None:
        self.home = home
        self.team = home.team_folder(launch["team"])
        if launch["folder"]:
            self.workdir = os.path.normpath(os.path.join(self.team, launch["folder"]))
        else:
            # Shared by all attempts, so a later one finds earlier checkpoints.
            self.workdir = f"{self.team}/{file_name(launch['job'])}"
        saves = launch["saves_folder"]
        self.checkpoints = os.path.normpath(os.path.join(self.workdir, saves)) if saves else ""
        # After the checkpoints, which stay in the job's own folder: others submit from there too.
        self.workdir = launch.get("submit_folder") or self.workdir
        self.user = launch.get("user")

    def prepare(self) -> int:
        """Create folders in the team's folder, and return the working directory, open.

        Other folders must exist. This runs with the team's rights, so a link planted by a job
        cannot reach further than the job.
        """
        if not os.path.isdir(self.team):
            private_folder(self.team)
        if self.user is not None and os.lstat(self.team).st_uid != self.user["uid"]:
            os.chown(self.team, self.user["uid"], self.user["gid"], follow_symlinks=False)
        with acting_as(self.user):
            if self.checkpoints and (self.user or self.checkpoints.startswith(f"{self.team}/")):
                os.close(open_folder(self.checkpoints, self.team))
            return open_folder(self.workdir, self.team)

    def mounts(self) -> list[str]:
        """Return the folders to mount in a container, none inside another."""
        named = dict.fromkeys(one for one in (self.team, self.workdir, self.checkpoints) if one)
        return [
            one
            for one in named
            if not any(one != other and one.startswith(f"{other}/") for other in named)
        ]


def escapes_team_folder(folder: str) -> bool:
    """Return whether a relative path leaves the folder it is relative to."""
    return not os.path.isabs(folder) and os.path.normpath(folder).split("/")[0] == ".."
