"""Hints for keys that other schedulers use, and that a job file spells in another way.

A key that is only misspelled gets the nearest key; these words are not near the right one.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from tenfold.model.fleet.finding import Finding

_WORDS: Mapping[str, tuple[str, ...]] = {
    "command": ("cmd", "script", "run", "args", "entrypoint", "exec", "wrap"),
    "name": ("job_name", "jobname", "title"),
    "team": ("account", "project", "group", "namespace", "tenant"),
    "image": ("container", "container_image", "docker_image"),
    "nodes": ("num_nodes", "nnodes", "n_nodes", "node_count", "replicas", "hosts"),
    "gpus": ("num_gpus", "ngpus", "n_gpus", "gpu_count", "total_gpus", "gpus_total", "world_size"),
    "gpus_per_node": ("gpu", "gpus_per_task", "gpus_per_replica", "gres", "nproc_per_node"),
    "accelerator": ("gpu_model", "gpu_name", "accelerators", "type", "device_type"),
    "cpus_per_node": ("cpu", "ncpus", "num_cpus", "cores", "cpus_per_task", "vcpus"),
    "memory_gib_per_node": (
        "mem",
        "memory",
        "ram",
        "mem_gb",
        "memory_gb",
        "memory_gib",
        "mem_per_node",
    ),
    "time_limit": ("time", "timelimit", "walltime", "timeout", "duration", "max_time", "limit"),
    "priority": ("nice", "prio", "priority_class", "qos"),
    "preemptible": ("preempt", "preemptable", "requeue", "spot"),
    "after": ("dependency", "dependencies", "depends_on", "depends", "afterok", "needs_jobs"),
    "env": ("environment", "export", "envs", "variables", "vars"),
    "workdir": ("cwd", "chdir", "working_dir", "working_directory", "workspace", "dir", "folder"),
    "checkpoint": ("checkpoint_dir", "checkpointing", "ckpt"),
    "grace": ("grace_period", "signal", "kill_wait"),
    "within": ("topology", "switches", "same_rack", "placement"),
    "needs": ("partition", "queue", "constraint", "features", "tags", "labels", "node_selector"),
    "avoids": ("exclude", "anti_affinity"),
    "data": ("dataset", "datasets", "inputs", "input_data"),
    "array": ("tasks", "ntasks", "count", "copies"),
    "allow_pending": ("allow_queue", "wait_for_nodes"),
}
"""Keys of a job file, and what other schedulers and launchers call them."""
_KEY_OF = {word: key for key, words in _WORDS.items() for word in words}
_MORE = {
    "gpus_per_node": " (`gpus` counts the whole job)",
    "memory_gib_per_node": " (in GiB)",
    "time_limit": ' (a duration, such as "12h")',
    "command": " (a list of arguments)",
    "needs": " (tags of nodes)",
    "array": " (identical jobs), or `nodes`?",
}
_NO_KEY = {
    word: "remove it: output is stored, and `tenfold job logs` prints it"
    for word in ("output", "error", "stdout", "stderr", "log", "logs")
}


def with_key_hint(one: Finding) -> Finding:
    """Return a finding; an unknown key that another scheduler uses gets the key to write."""
    if one.code != "unknown-key" or len(one.path) != 1:
        return one
    word = str(one.path[0]).strip("-").lower().replace("-", "_")
    if word in _NO_KEY:
        return replace(one, hint=_NO_KEY[word])
    key = _KEY_OF.get(word)
    if key is None:
        return one
    more = _MORE.get(key, "")
    return replace(one, hint=f"did you mean `{key}`{more}" + ("" if "?" in more else "?"))
