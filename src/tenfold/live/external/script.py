"""The script of an attempt's members: POSIX shell, since nodes need not have Python.

It sets the variables of the member, runs the command as a child and writes what became of it:

    N.started    the process of the command, once it was started
    N.exit       its exit code, or `start-failed` and why
    claim/       made by the engine's job, which runs only if it could make `taken` in it
    claim/first  the member that failed first

Like every shell, it reports a command that a signal killed as 128 plus the number of that signal.
"""

from collections.abc import Mapping
from shlex import quote

from msgspec import Struct

from tenfold.live.local.attempt.heartbeat import heartbeat_file
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.wire import LaunchLine

NAME = "member.sh"
CLAIM, TAKEN, OWNER, FIRST = "claim", "taken", "id", "first"
PORT_FIRST, PORTS = 20_000, 10_000
"""Below the ports that Linux gives to outgoing connections. An assumption."""

_RUN = """\
fail_first() {
  mkdir "$attempt/claim/failed" 2> /dev/null || return 1
  echo "$rank" > "$attempt/claim/first"
}
report() {
  printf '%s\\n' "$1" > "$attempt/$rank.exit.part"
  mv "$attempt/$rank.exit.part" "$attempt/$rank.exit"
}
end_gang() {
@END_GANG@
}
kill_child() {
  # Its session, if it has one by now.
  [ -z "$child" ] || kill -KILL "-$child" 2> /dev/null || kill -KILL "$child" 2> /dev/null
}
failed() {
  trap : TERM
  report "start-failed $1"
  fail_first && end_gang
  exit 127
}
exec >> "$attempt/$rank.log" 2>&1
@ENTER@
found=$(command -v -- "$1") || failed "cannot run the command \\`$1\\`: not found"
case $found in
  /*) [ -x "$found" ] || failed "cannot run the command \\`$1\\`: not executable" ;;
esac
stopping=
signalled=
killing=
child=
trap 'stopping=1 signalled=1' TERM
trap 'stopping=1 signalled=1 killing=1; kill_child' USR1
session=$(command -v setsid)
born=$(date +%s)
$session env -- "$@" &
child=$!
[ -z "$killing" ] || kill_child
echo "$child" > "$attempt/$rank.started"
wait "$child"
code=$?
while [ "$signalled" ]; do
  # The signal ended the wait, and not the command.
  signalled=
  if [ "$(( $(date +%s) - born ))" -le 2 ]; then
    # A signal between the fork and the command is lost on the child.
    sleep 1
    kill -TERM "-$child" 2> /dev/null || kill -TERM "$child" 2> /dev/null
  fi
  wait "$child"
  again=$?
  [ "$again" = 127 ] || code=$again
done
is_first=
if [ "$code" != 0 ] && [ -z "$stopping" ] && fail_first; then
  is_first=1
fi
report "$code"
[ -z "$is_first" ] || end_gang
exit "$code"
"""


class Engagement(Struct, frozen=True, kw_only=True):
    """What an engine knows of an attempt beyond its launch."""

    address: str
    """Of the first member's node, as the others reach it."""
    home: str = ""
    """The home directory of the user that the job runs as, if it is another one."""
    port_from: str
    """A number of the attempt, as a shell expression."""
    end_gang: str = "  :"
    """The lines that end the others when a member fails."""


def member_script(
    launch: LaunchLine, folder: str, folders: JobFolders, engagement: Engagement
) -> str:
    """Return the script of all members of an attempt; its first argument is the rank."""
    nodes = len(launch["members"])
    values = {
        **launch["inherited"],
        **_user(launch, engagement.home),
        **dict(launch["env"]),
        **_gang(launch, engagement.address),
        **_own(launch),
        **_saves(launch, folders.checkpoints),
    }
    lines = ["#!/bin/sh", "rank=$1", f"attempt={quote(folder)}"]
    lines += [f"export {name}={quote(value)}" for name, value in values.items() if _is_name(name)]
    unusual = [f"{name}={value}" for name, value in values.items() if not _is_name(name)]
    lines.append(f"export MASTER_PORT=$(({PORT_FIRST} + {engagement.port_from} % {PORTS}))")
    lines.append("export PET_MASTER_PORT=$MASTER_PORT NODE_RANK=$rank PET_NODE_RANK=$rank")
    lines.append(
        f'export TENFOLD_HEARTBEAT="$attempt/{heartbeat_file("", 0)[1:].replace("0", "$rank")}"'
    )
    # The engine numbers the devices; a job without GPUs sees none.
    lines.append("export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-}")
    lines.append(_per_rank(launch))
    if all(len(member["gpus"]) <= 1 for member in launch["members"]):
        # With one process per node, the gang needs no launcher to assign ranks.
        lines.append(f"export RANK=$rank WORLD_SIZE={nodes} LOCAL_RANK=0")
    command = [quote(word) for word in [*unusual, *launch["command"]]]
    lines.append(f"set -- {' '.join(command)}")
    workdir = folders.workdir
    enter = f"cd {quote(workdir)} || failed {quote(f'cannot enter the folder `{workdir}`')}"
    return (
        "\n".join(lines)
        + "\n"
        + _RUN.replace("@END_GANG@", engagement.end_gang).replace("@ENTER@", enter)
    )


def _gang(launch: LaunchLine, address: str) -> Mapping[str, str]:
    return {
        "MASTER_ADDR": address,
        "PET_MASTER_ADDR": address,
        "PET_NNODES": str(len(launch["members"])),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def _user(launch: LaunchLine, home: str) -> Mapping[str, str]:
    if "user" not in launch:
        return {}
    name = launch["user"]["name"]
    return {"USER": name, "LOGNAME": name, **({"HOME": home} if home else {})}


def _own(launch: LaunchLine) -> Mapping[str, str]:
    return {
        "TENFOLD_JOB": launch["job"],
        "TENFOLD_ATTEMPT": str(launch["attempt"]),
        "TENFOLD_NODES": ",".join(member["node"] for member in launch["members"]),
    }


def _saves(launch: LaunchLine, saves: str) -> Mapping[str, str]:
    if not saves:
        return {}
    every_ms = launch["saves_every_ms"]
    every = {} if every_ms is None else {"TENFOLD_CHECKPOINT_EVERY_S": f"{every_ms / 1_000:g}"}
    return {"TENFOLD_CHECKPOINT_DIR": saves, **every}


def _per_rank(launch: LaunchLine) -> str:
    cases = [
        f"  {rank}) export PET_NPROC_PER_NODE={max(len(member['gpus']), 1)} ;;"
        for rank, member in enumerate(launch["members"])
    ]
    return "case $rank in\n" + "\n".join(cases) + "\nesac"


def _is_name(name: str) -> bool:
    return name.isidentifier() and name.isascii()
