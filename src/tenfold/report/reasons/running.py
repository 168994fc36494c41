"""What happened to actions, attempts and jobs, stage by stage."""

from tenfold.report.reasons.template import Template

STAGES = {
    "submitted": Template(
        "requests [{gpus?:#GPU}|no GPUs][ for {team:team}]"
        "[, submitted before the recording begins{earlier:word}]",
        earlier={"yes": ""},
    ),
    "start-ordered": Template(
        "[could start when {job:job} {how:word}"
        "|could start when {node:node} returned|capacity was available]"
        "[; {cause:causes}]"
    ),
    "cheapest-site": Template(
        "{site:name} costs ${usd:.2f}[ with {staging_ms:ms} of staging and ${egress:.2f} of egress]"
        "[, {other:name} ${other_usd:.2f}[ with {other_staging_ms:ms} of staging and "
        "${other_egress:.2f} of egress]]",
        plain="it costs least there",
    ),
    "cheaper-site-full": Template(
        "{site:name} costs ${usd:.2f}[ with {staging_ms:ms} of staging and ${egress:.2f} of egress]"
        "[, and {other:name} at ${other_usd:.2f} has no free nodes for it]",
        plain="a cheaper site has no room",
    ),
    "data-reachable": Template(
        "no link from its data to {other:name}; {site:name} costs ${usd:.2f}"
        "[ with {staging_ms:ms} of staging and ${egress:.2f} of egress]",
        plain="no link from its data to the other sites",
    ),
    "started": Template(
        "on {on:nodes}[, attempt {run}][, resuming from {saved_ms?:ms} of saved work]"
    ),
    "changed": Template("now requests [{gpus?:#GPU}|no GPUs][ for {team:team}]"),
    "resized": Template("from {before} to {gpus:#GPU} on {on:nodes}[: {cause:causes}]"),
    "idled": Template("{gpus:#GPU} idle", shown="gpus-idle"),
    "idle-reclaimed": Template("idle for {idle_ms:ms}; its GPUs were reclaimed"),
    "ended": Template("{status:word} after running for {ran_ms:ms}"),
    "refused": Template("can never fit on this fleet"),
    "stopped": Template(
        "[{said:text}|[{node:node} was lost[ ({note?:text})]|{cause:word}]; "
        "{saved_ms:ms} of work saved|stopped]"
    ),
}

ENDS = {
    "completed": Template("completed"),
    "failed": Template("[{cause:causes}|exit code {exit_code}|the command failed]"),
    "timeout": Template("exceeded its time limit"),
    "cancelled": Template("cancelled[ by {by:user}]"),
    "released": Template("released[ by {by:user}]; pending again"),
    "preempted": Template("preempted; pending again"),
    "node-lost": Template("[{said:text}|[{node:node}|a node] was lost]", plain="a node was lost"),
    "start-failed": Template("[{said:text}|the start failed]", plain="the start failed"),
    "end-not-seen": Template("it ended, but its outcome was not recorded"),
    "ended-in-slurm": Template("Slurm: {state:word}"),
    "moved": Template("moved to other nodes; pending again"),
    "crashed": Template("the command failed; retried from its last checkpoint"),
}

ATTEMPTS = {
    "job-not-running": Template("{job:job} ended before the {order:word} took effect"),
    "job-not-elastic": Template("{job:job} cannot be resized"),
    "node-down": Template("{node:node} is down"),
    "attempt-unknown": Template("the executor has no record of the attempt"),
    "site-lost": Template("its site[, {site:name},] did not respond in time"),
    "not-at-one-site": Template("{node:node} has no engine, or is at another site"),
    "attempts-lost": Template(
        "lost {times} attempts in a row without a new checkpoint: {cause:causes}",
        plain="its attempts were lost too often",
    ),
    "machine-restarted": Template("the machine restarted; the outcome is unknown"),
    "attempt-failed": Template("{job:job}, attempt {attempt} ({how:word})"),
    "allocation-failed": Template(
        "{said:text}", plain="the command failed; the memory limit of each process may be the cause"
    ),
    "image-not-run": Template("{said:text}", plain="the container image did not run"),
    "end-not-written": Template("{said:text}", plain="the end of the attempt was not recorded"),
    "stale-order": Template("{said:text}", plain="a newer attempt exists"),
    "earlier-attempt-lives": Template(
        "{said:text}", plain="an earlier attempt is still running", shown="earlier-attempt-running"
    ),
    "node-is-lost": Template("{said:text}", plain="a node of the start is lost"),
    "cannot-write": Template(
        "cannot write: {said:text}", plain="the node cannot write to its disk"
    ),
    "no-such-attempt": Template("{said:text}", plain="the attempt never started there"),
    "supervisor-told": Template(
        "{said:text}", plain="the supervisor was stopped", shown="supervisor-stopped"
    ),
    "supervisor-lost": Template(
        "{said:text}", plain="the supervisor process died; the outcome is unknown"
    ),
    "silent": Template("{said:text}", plain="no heartbeat for too long", shown="no-heartbeat"),
    "out-of-memory": Template("{said:text}", plain="out of memory"),
    "no-command": Template("no command given"),
    "no-members": Template("the job has no processes"),
    "unusable-word": Template(
        "[{runtime:word} cannot pass a multi-line variable into a container"
        "|NUL in an argument, or `=` in a variable name]",
        plain="an argument or variable that cannot be used",
    ),
    "folder-outside-team": Template(
        "[directory `{folder:text}` is|a directory is] outside the team's directory"
    ),
    "unusable-image": Template(
        "[`{image:text}` is not an image that {runtime:word} has on this node"
        "|`{image:text}` is an option, not an image|not a usable image]",
        plain="not a usable image",
    ),
    "no-container-runtime": Template(
        "[image `{image:text}`|the image] needs {runtimes:names}, which this node does not have",
        plain="this node has no container runtime",
    ),
    "image-elsewhere": Template(
        "[`{image:text}`|the image] is remote, and Tenfold does not pull images: {runtime:word} "
        "needs a local file",
        plain="the image is not on this node",
        shown="image-not-local",
    ),
    "gpus-not-described": Template(
        "{runtime:word} has no CDI spec for this node's GPUs: run "
        "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
    ),
    "no-team-user": Template("no free UID for {team:team}: see `tenfold up --team-uids`"),
    "engine-refused": Template("{said:text}", plain="the engine refused the start"),
    "engine-busy": Template("{said:text}", plain="the engine does not respond"),
    "cancelled-in-engine": Template("{said:text}", plain="it was cancelled in its engine"),
    "preempted-in-engine": Template("{said:text}", plain="its engine preempted it"),
    "limited-in-engine": Template("{said:text}", plain="its engine stopped it at the time limit"),
    "result-missing": Template("{said:text}", plain="it wrote no result"),
    "no-unix-user": Template("no Unix user is set for {team:team}: see `tenfold up --slurm-user`"),
    "uneven-gang": Template(
        "{engine:word} runs processes of one size only: request GPUs per node, not in total"
    ),
    "members-share-node": Template("{engine:word} runs one process of a job per node"),
    "refused-by-chance": Template("rejected at random (simulated)"),
}
