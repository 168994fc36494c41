"""Why a request is rejected. Names in these come from the request itself."""

from tenfold.report.reasons.template import Template

REQUESTS = {
    "shutting-down": Template("the control plane is shutting down"),
    "too-many-requests": Template("{most} requests are already queued"),
    "standby": Template(
        "this control plane is a standby[; the leader is {url:word}|]", plain="standby"
    ),
    "not-leader": Template("this control plane is not the leader[; {url:word} is|]"),
    "loop-ended": Template("the scheduling loop ended: restart the control plane"),
    "starting": Template("the control plane is reading its journal"),
    "journal-waits": Template("the journal has not responded for {waited_s:.0f} s"),
    "job-not-active": Template("job {name:name} is neither pending nor running"),
    "job-not-held": Template("job {name:name} is not held"),
    "key-taken": Template("key {key:name} was already used for a different submission"),
    "backlog-full": Template(
        "the team's unfinished jobs have {most_mib} MiB of events, which is the limit"
    ),
    "shell-not-running": Template("job {name:name} is not running"),
    "shell-no-member": Template("job {name:name} has {count} processes, numbered from 0"),
    "shell-failed": Template("cannot open a shell[: {said:text}|]", plain="cannot open a shell"),
    "shell-unsupported": Template("this executor cannot open shells in running jobs"),
    "too-many-shells": Template("{most} shells are open, which is the limit"),
    "request-failed": Template("the control plane failed on this request ({error:word})"),
    "loop-failed": Template(
        "{error:word}[: {said:text}|: {detail:word}|]", plain="the scheduling loop failed"
    ),
    "not-known": Template(
        "the journal did not respond[: {said:text}|: {detail:word}|]",
        plain="the journal did not respond",
    ),
}
