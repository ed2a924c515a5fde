"""What is served and how it goes: `/info`, `/health`, `/metrics`; and trained tasks that answer."""

from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from elmokit import __version__
from elmokit.serve.models import describe_model
from elmokit.serve.refusals import JSON, RefusedError
from elmokit.serve.requests import Served, responses
from elmokit.serve.schemas import TaskRequest
from elmokit.serve.service import ServedTask
from elmokit.tasks.task import shown

router = APIRouter(tags=["Server"], responses=responses())
tasks = APIRouter(tags=["Tasks"], responses=responses())
Object = dict[str, Any]
METRICS: Any = {200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}}}
TASK_NAME = "Its folder's name."


@router.get("/info", response_model=Object)
async def info(service: Served) -> JSON:
    """The models, corpora, tasks and limits; about the first model by text-embeddings-inference's names too."""
    model, limits = service.model(None), service.limits
    theirs = {
        "model_id": model.name,
        "model_sha": model.elmo.digest,
        "model_dtype": model.elmo.engine.precision,
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_concurrent_requests": limits.requests,
        "max_input_length": limits.tokens,
        "max_batch_tokens": model.batcher.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": limits.texts,
        "auto_truncate": False,
        "tokenization_workers": 1,
        "version": __version__,
    }
    ours = {
        "models": [describe_model(one.name, one.elmo, one.card) for one in service.models.values()],
        "corpora": [one.status() for one in service.corpora.values()],
        "tasks": [describe_task(one) for one in service.tasks.values()],
        "static": None
        if service.static is None
        else {"words": len(service.static.words), "width": service.static.width},
        "limits": asdict(limits),
    }
    return JSON(theirs | ours)


@router.get("/health", response_model=Object)
async def health() -> JSON:
    """That the server answers."""
    return JSON({"status": "ok"})


@router.get("/metrics", response_class=Response, responses=METRICS)
async def metrics(service: Served) -> Response:
    """Requests, their time, batches, the queue, tokens and memory, in Prometheus' form."""
    return Response(service.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@tasks.post("/tasks/{name}", response_model=Object)
async def predict(name: str, body: TaskRequest, service: Served) -> JSON:
    """What a trained task answers to texts, lists of tokens, or objects as `elmokit task predict` reads them."""
    task = service.task(name)
    inputs = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    if len(inputs) > service.limits.texts:
        raise RefusedError(413, f"{len(inputs):,} inputs: the limit is {service.limits.texts:,} in a request")

    def find() -> list[Object]:
        items = [task.predictor.item(f"input {number}", one) for number, one in enumerate(inputs, 1)]
        service.check_tokens(sum(item.size for item in items))
        return list(map(shown, task.predict(items)))

    return JSON({"task": task.predictor.config.task, "answers": await service.workers.run(find)})


def describe_task(task: ServedTask) -> Object:
    """What a task is, its labels, and what its mixes have learned of the layers."""
    config, inputs = task.predictor.config, getattr(task.predictor.model, "inputs", None)
    mixes = [] if inputs is None else msgspec.to_builtins(inputs.mix_reports())
    names = [one.name.rsplit("/", 1)[-1] for one in config.embedders]
    labels = list(getattr(config, "labels", ()))
    return {"name": task.name, "task": config.task, "labels": labels, "embedders": names, "mixes": mixes}
