"""Kubernetes: the same pods as a plain Indexed Job and as a JobSet.

The Job comes with its own headless service; a JobSet's controller creates one. The
program's files are in a ConfigMap. Rank and first node are known before the pods start,
so torchrun gets them as arguments and needs no rendezvous.
"""

from collections.abc import Sequence
from typing import cast

import yaml

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.payload import PORT, Payload, processes_per_node, torchrun_sizes
from tenfold.files.launch.shell import comments
from tenfold.files.launch.trainers import launcher_payload
from tenfold.model.errors import InputError
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

FOLDER = "/tenfold/"
_EXAMPLE_IMAGE = "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime"
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_Object = dict[str, object]


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return a Job with its service and a JobSet: apply one of the two."""
    check_job(job)
    payload = launcher_payload(plan, job, "kubernetes", FOLDER)
    files = [_config_map(job, payload)] if payload.files else []
    notes = "".join(f"{line}\n" for line in comments(payload.notes))
    service_host = f"{job.name}-0.{job.name}"
    set_host = f"{job.name}-workers-0-0.{job.name}"
    return {
        "job.yaml": notes + _text([*files, _service(job), _job(plan, job, payload, service_host)]),
        "jobset.yaml": notes + _text([*files, _job_set(plan, job, payload, set_host)]),
    }


def _text(objects: Sequence[_Object]) -> str:
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks, without YAML anchors."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _block)


def _metadata(job: LaunchJob, name: str) -> _Object:
    labels = {"app.kubernetes.io/managed-by": "tenfold", "app.kubernetes.io/name": job.name}
    if job.team:
        labels["tenfold/team"] = job.team
    place = {"namespace": job.namespace} if job.namespace else {}
    return {"name": name, **place, "labels": labels}


def _queued(job: LaunchJob, name: str) -> _Object:
    """Return the metadata with the queue label that Kueue reads."""
    metadata = _metadata(job, name)
    if job.queue:
        labels = cast(dict[str, str], metadata["labels"])
        metadata["labels"] = {**labels, "kueue.x-k8s.io/queue-name": job.queue}
    return metadata


def _config_map(job: LaunchJob, payload: Payload) -> _Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(job, f"{job.name}-files"),
        "data": payload.files,
    }


def _service(job: LaunchJob) -> _Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, job.name),
        "spec": {
            "clusterIP": "None",
            # The first pod is looked up before it is ready.
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": job.name},
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }


def _job(plan: TrainPlan, job: LaunchJob, payload: Payload, host: str) -> _Object:
    pod = _pod(plan, job, payload, host)
    pod["subdomain"] = job.name
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _queued(job, job.name),
        "spec": _job_spec(plan, job, pod),
    }


def _job_set(plan: TrainPlan, job: LaunchJob, payload: Payload, host: str) -> _Object:
    workers: _Object = {
        "name": "workers",
        "replicas": 1,
        "template": {"spec": _job_spec(plan, job, _pod(plan, job, payload, host))},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _queued(job, job.name),
        "spec": {
            "network": {
                "enableDNSHostnames": True,
                "subdomain": job.name,
                "publishNotReadyAddresses": True,
            },
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [workers],
        },
    }


def _job_spec(plan: TrainPlan, job: LaunchJob, pod: _Object) -> _Object:
    spec: _Object = {
        "completionMode": "Indexed",
        "completions": plan.nodes,
        "parallelism": plan.nodes,
        # Losing one pod ends the gang: the others would hang in a collective.
        "backoffLimit": 0,
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": job.name}}, "spec": pod},
    }
    if job.time_limit_s is not None:
        spec["activeDeadlineSeconds"] = job.time_limit_s
    return spec


def _pod(plan: TrainPlan, job: LaunchJob, payload: Payload, host: str) -> _Object:
    volumes: list[_Object] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    mounts: list[_Object] = [{"name": "shm", "mountPath": "/dev/shm"}]
    if payload.files:
        volumes.append({"name": "files", "configMap": {"name": f"{job.name}-files"}})
        mounts.append({"name": "files", "mountPath": FOLDER.rstrip("/")})
    gpus = processes_per_node(plan)
    container: _Object = {
        "name": "trainer",
        "image": _image(job),
        "command": _command(plan, payload),
        **({"workingDir": job.work_dir} if job.work_dir else {}),
        "env": _env(job, payload, host),
        "ports": [{"containerPort": PORT}],
        # Kubernetes requires equal requests and limits for devices.
        "resources": {"requests": {"nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}},
        "volumeMounts": mounts,
    }
    return {"restartPolicy": "Never", "containers": [container], "volumes": volumes}


def _image(job: LaunchJob) -> str:
    if job.image or (job.trainer == "example" and not job.script):
        return job.image or _EXAMPLE_IMAGE
    raise InputError(
        "missing-image",
        "a pod needs a container image with the program",
        "set `image`, such as `registry/name:tag`",
        field="image",
    )


def _command(plan: TrainPlan, payload: Payload) -> list[str]:
    return [
        "torchrun",
        *torchrun_sizes(plan),
        "--node-rank=$(NODE_RANK)",
        "--master-addr=$(MASTER_ADDR)",
        f"--master-port={PORT}",
        *(_literal(word) for word in payload.argv),
    ]


def _env(job: LaunchJob, payload: Payload, host: str) -> list[_Object]:
    given = {**payload.env, **job.env}
    return [
        {"name": "MASTER_ADDR", "value": host},
        {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        *({"name": name, "value": _literal(value)} for name, value in given.items()),
    ]


def _literal(text: str) -> str:
    """Return a text that Kubernetes does not expand: it would replace `$(NAME)`."""
    return text.replace("$(", "$$(")
