"""Slurm's variables and commands, for batch scripts that were written for Slurm.

The variables describe one task per node: `srun` starts the others. The script runs on each node, so
does `srun`: a step with fewer nodes than the job runs on its first nodes; on the others `srun`
does nothing and succeeds, without waiting. If the script reads what a step prints, as in
`ip=$(srun -N1 -n1 -w "$head" hostname -i)`, the step runs on each node, since each needs the
answer. `srun` and `scontrol` are shell functions, which bash
takes from its environment, so that no folder of programs is needed where the job runs. What such a
function cannot do, it says, and it fails.

`scontrol show hostnames` is read to find the address of the first node. All nodes of a job are on
this machine, and the names of virtual nodes do not resolve, or are those of other machines: their
address is printed instead.
"""

import re

from tenfold.live.local.spawner.wire import LaunchLine

_NAME = re.compile(r"(?P<name>.*)-(?P<number>\d+)(?:\[(?P<index>\d+)\])?\Z")
SRUN = r"""() {
  local tasks="" nodes="" each="" skip=0 names="" word value
  while [ $# -gt 0 ]; do
    word=$1 value=""
    case $word in
      --) shift; break ;;
      --*=*) value=${word#*=}; word=${word%%=*}; shift ;;
      -[nNwr][!-]*) value=${word:2}; value=${value#=}; word=${word:0:2}; shift ;;
      -n|--ntasks|-N|--nodes|--ntasks-per-node|-w|--nodelist|-r|--relative|-c|--cpus-per-task|-p|--partition|-J|--job-name|-G|--gpus|-t|--time|-A|--account|-o|--output|-e|--error|-i|--input|-D|--chdir|-m|--distribution|-C|--constraint|-x|--exclude|--gres|--gpus-per-node|--gpus-per-task|--mem|--mem-per-cpu|--cpu-bind|--gpu-bind|--mpi|--export|--jobid|-W|--wait)
        [ $# -gt 1 ] || { echo "srun: $word needs a value" >&2; return 2; }
        value=$2; shift 2 ;;
      -*) shift ;;
      *) break ;;
    esac
    case $word in
      -n|--ntasks) tasks=$value ;;
      -N|--nodes) nodes=${value%%-*} ;;
      --ntasks-per-node) each=$value ;;
      -r|--relative) skip=$value ;;
      -w|--nodelist) names=$value ;;
      -o|--output|-e|--error|-i|--input|-D|--chdir)
        echo "srun: $word is not supported here; redirect with > or use cd" >&2; return 2 ;;
      --multi-prog|--jobid|-x|--exclude)
        echo "srun: $word is not supported here" >&2; return 2 ;;
    esac
  done
  [ $# -gt 0 ] || { echo "srun: no command" >&2; return 2; }
  local all_nodes=${SLURM_NNODES:-1} here=${SLURM_NODEID:-0} count one read=""
  if [ -p /dev/stdout ] && ! [ /dev/stdout -ef "/proc/$$/fd/1" ]; then read=1; fi
  for count in "${tasks:-1}" "${nodes:-1}" "${each:-1}" "$((skip + 1))"; do
    case $count in
      *[!0-9]*|0*|"") echo "srun: \`$count\` is not a number of tasks or nodes" >&2; return 2 ;;
    esac
  done
  if [ -n "$names" ] && [ -n "$read" ]; then names="" nodes=${nodes:-1}; fi
  if [ -n "$names" ] && [ "$all_nodes" -gt 1 ]; then
    local list=,$SLURM_JOB_NODELIST, before at=""
    for one in ${names//,/ }; do
      case $list in
        *,"$one",*)
          if [ -z "$at" ]; then before=${list%%",$one,"*}; at=${before//[!,]/}; at=${#at}; fi ;;
        *) echo "srun: -w $one: name nodes as in \$SLURM_JOB_NODELIST, or use --relative" >&2
           return 2 ;;
      esac
    done
    skip=$at
    if [ -z "$nodes" ]; then one=${names//[!,]/}; nodes=$(( ${#one} + 1 )); fi
  fi
  local span=${nodes:-$(( all_nodes - skip ))}
  if [ -z "$nodes" ] && [ -n "$tasks" ] && [ "$tasks" -lt "$span" ]; then span=$tasks; fi
  if [ $(( skip + span )) -gt "$all_nodes" ]; then
    echo "srun: $span nodes after the first $skip, but the job has $all_nodes" >&2; return 1
  fi
  if [ -z "$tasks" ]; then tasks=$(( span * ${each:-${SLURM_NTASKS_PER_NODE:-1}} )); fi
  if [ "$tasks" -lt "$span" ]; then span=$tasks; fi
  local rank=$(( here - skip ))
  if [ "$rank" -lt 0 ] || [ "$rank" -ge "$span" ]; then
    [ -n "$read" ] || return 0
    rank=0
  fi
  local own=$(( tasks / span )) over=$(( tasks % span ))
  local first=$(( rank * own + (rank < over ? rank : over) ))
  if [ "$rank" -lt "$over" ]; then own=$(( own + 1 )); fi
  local -x SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks SLURM_STEP_NUM_TASKS=$tasks
  local -x SLURM_NNODES=$span SLURM_STEP_NUM_NODES=$span SLURM_NODEID=$rank
  local -x SLURM_PROCID=$first SLURM_LOCALID=0
  if [ "$span" -lt "$all_nodes" ]; then
    local -x NODE_RANK=$rank PET_NODE_RANK=$rank PET_NNODES=$span
    if [ -n "${RANK:-}" ]; then local -x RANK=$first WORLD_SIZE=$tasks; fi
  fi
  if [ "$own" -eq 1 ]; then
    "$@"
    return
  fi
  local local_id pids="" status=0
  for (( local_id = 0; local_id < own; local_id++ )); do
    SLURM_PROCID=$(( first + local_id )) SLURM_LOCALID=$local_id "$@" &
    pids="$pids $!"
  done
  for one in $pids; do wait "$one" || status=$?; done
  return $status
}"""
SCONTROL = r"""() {
  if [ "$1" = show ] && { [ "$2" = hostnames ] || [ "$2" = hostname ]; }; then
    local list=${3:-$SLURM_JOB_NODELIST}
    if [ "$list" = "$SLURM_JOB_NODELIST" ]; then
      local one
      for one in ${TENFOLD_NODES//,/ }; do
        if [ "$one" = "$HOSTNAME" ] && getent hosts "$one" > /dev/null 2>&1; then
          echo "$one"
        else
          echo 127.0.0.1
        fi
      done
      return
    fi
  fi
  echo "scontrol: only \`scontrol show hostnames\` of the job's nodes works in a job" >&2
  return 2
}"""


def slurm_variables(launch: LaunchLine, rank: int) -> dict[str, str]:
    """Return the variables that Slurm would set; those of the submission are already there."""
    own = dict(launch["env"])
    members = launch["members"]
    member = members[rank]
    match = _NAME.match(launch["job"])
    number, index = (0, "") if match is None else (int(match["number"]), match["index"] or "")
    job_id = number + _place(own.get("TENFOLD_ARRAY_INDEXES", ""), index)
    # A member that is run again alone has its index, but not in its name.
    index = own.get("TENFOLD_ARRAY_INDEX", "")
    nodes = ",".join(one["node"] for one in members)
    each = own.get("SLURM_NTASKS_PER_NODE", "1")
    found = {
        "SLURM_JOB_ID": str(job_id),
        "SLURM_JOBID": str(job_id),
        "SLURM_JOB_NAME": own.get("SLURM_JOB_NAME", launch["name"]),
        "SLURM_JOB_ACCOUNT": launch["team"],
        "SLURM_JOB_NUM_NODES": str(len(members)),
        "SLURM_NNODES": str(len(members)),
        "SLURM_JOB_NODELIST": nodes,
        "SLURM_NODELIST": nodes,
        "SLURMD_NODENAME": member["node"],
        "SLURM_NODEID": str(rank),
        "SLURM_PROCID": str(rank * int(each)),
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": str(len(members) * int(each)),
        "SLURM_NPROCS": str(len(members) * int(each)),
        "SLURM_TASKS_PER_NODE": each if len(members) == 1 else f"{each}(x{len(members)})",
        "SLURM_CPUS_ON_NODE": str(max(1, member["cpus_milli"] // 1_000)),
        "SLURM_JOB_CPUS_PER_NODE": str(max(1, member["cpus_milli"] // 1_000)),
        "SLURM_RESTART_COUNT": str(launch["attempt"] - 1),
        "SLURM_CLUSTER_NAME": "tenfold",
        "BASH_FUNC_srun%%": SRUN,
        "BASH_FUNC_scontrol%%": SCONTROL,
    }
    if gpus := member["gpus"]:
        found |= {
            "SLURM_GPUS": str(sum(len(one["gpus"]) for one in members)),
            "SLURM_GPUS_ON_NODE": str(len(gpus)),
            "SLURM_JOB_GPUS": ",".join(str(gpu) for gpu in gpus),
            "SLURM_STEP_GPUS": ",".join(str(gpu) for gpu in gpus),
        }
    if member["memory_mib"]:
        found["SLURM_MEM_PER_NODE"] = str(member["memory_mib"])
    if index:
        found |= {"SLURM_ARRAY_JOB_ID": str(number), "SLURM_ARRAY_TASK_ID": index}
    return found


def _place(indexes: str, index: str) -> int:
    """Return the place of a member in its array: each member has a number of its own."""
    if not index:
        return 0
    place = 0
    for span in indexes.split(",") if indexes else ():
        first, _, last = span.partition("-")
        if int(first) <= int(index) <= int(last or first):
            return place + int(index) - int(first)
        place += int(last or first) - int(first) + 1
    return int(index) if not indexes else 0
