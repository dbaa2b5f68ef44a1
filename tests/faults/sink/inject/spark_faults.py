"""Kill points of a Spark application: modules of the connector are wrapped when they are imported.

The variables ``FAULTS_FOLDER``, ``FAULTS_RUN`` and ``FAULTS_FAULT`` (JSON) are the arguments of ``inject.arm``. The
processes note in ``log.jsonl`` each transaction that they begin, and each commit.

The id of its transaction is appended to each event, so readers can see it. The digests are computed before, so replays
are compared as they would be without.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from tests.faults.inject import after, arm, during, note, notes, reach


def install() -> None:
    """Wrap the connector's modules when they are imported."""
    fault = json.loads(os.environ.get("FAULTS_FAULT", "{}"))
    arm(Path(os.environ["FAULTS_FOLDER"]), fault, os.environ.get("FAULTS_RUN", ""))
    sys.meta_path.insert(0, _Finder())


def hide(package: str) -> None:
    """Let imports of a package fail."""

    class Hidden(MetaPathFinder):
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == package:
                raise ModuleNotFoundError(f"{package} is hidden", name=package)

    sys.meta_path.insert(0, Hidden())


#: Batch, partition and attempt of the task of the JVM that this thread helps.
_jvm = threading.local()
#: Times between which a task of the JVM writes rows, and the seconds between them.
_WHILE_WRITING, _BETWEEN = 4, 0.1


def _task() -> dict[str, Any]:
    """Return batch, partition and attempt of the task that runs; nothing outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return dict(getattr(_jvm, "task", {}))
    batch = context.getLocalProperty("streaming.sql.batchId")
    return {
        "batch": None if batch is None else int(batch),
        "partition": context.partitionId(),
        "attempt": context.attemptNumber(),
    }


def _patch_transactions(module: Any) -> None:
    write, begin = module.OpenTransaction.write_column, module.TransactionalWriter.begin

    def begin_noted(writer: Any, *args: Any, **kwargs: Any) -> Any:
        transaction = begin(writer, *args, **kwargs)
        note("begun", transaction=str(transaction.id), stream=str(writer.stream), lease=writer.lease, **_task())
        return transaction

    def write_column(self: Any, events: Any, routing_keys: Any = None) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        signature = pa.scalar(b"|" + str(self.id).encode(), pa.binary())
        write(self, pc.binary_join_element_wise(events.cast(pa.binary()), signature, b""), routing_keys)

    module.OpenTransaction.write_column = write_column
    module.TransactionalWriter.begin = begin_noted


def _patch_tasks(module: Any) -> None:
    after(module._Share, "_begin", "after begin", where=_task)
    after(module._Share, "add", "while writing", where=_task)
    after(module._Task, "prepare", "after flush", where=_task)
    after(module.ExactlyOnce, "write", "after message", where=_task)
    commit = module.ExactlyOnce.commit

    def commit_noted(self: Any, client: Any, messages: Any, batch: int) -> None:
        parts = [str(part.transaction) for m in messages for part in getattr(m, "parts", ())]
        note("commit", batch=batch, parts=parts)
        try:
            commit(self, client, messages, batch)
        except Exception as error:
            note("commit failed", batch=batch, error=str(error))
            raise
        note("commit done", batch=batch)

    module.ExactlyOnce.commit = commit_noted


def _patch_jvm_tasks(module: Any) -> None:
    after(module.TaskTransaction, "prepared", "after flush", where=_task)
    answer = module._Task.answer

    def answer_at_points(self: Any, request: Any) -> Any:
        if request["do"] == "write_open":
            batch, partition = request["properties"]["streaming.sql.batchId"], request["partition"]
            task = {"batch": None if batch is None else int(batch), "partition": partition}
            earlier = [line for line in notes() if line["what"] == "begun" and task.items() <= line.items()]
            self.task = {**task, "attempt": len(earlier)}
        _jvm.task = getattr(self, "task", {})
        result = answer(self, request)
        if request["do"] == "write_open":
            reach("while writing", **_task())
            threading.Thread(target=_write_on, args=(_task(),), daemon=True).start()
        elif request["do"] == "write_finish":
            reach("after message", **_task())
        return result

    module._Task.answer = answer_at_points


def _write_on(task: dict[str, Any]) -> None:
    for _ in range(_WHILE_WRITING):
        time.sleep(_BETWEEN)
        reach("while writing", **task)


def _patch_ledger(module: Any) -> None:
    answer, commit, now = module._answer, module.Servers._commit, {"batch": -1}

    def answer_at_points(machine: Any, servers: Any) -> Any:
        phase, batch = machine.phase.name, machine.job.batch
        now["batch"] = batch
        note("phase", phase=phase, batch=batch)
        reach(f"before {phase}", batch=batch)
        result = during(f"during {phase}", lambda: answer(machine, servers), batch=batch)
        reach(f"after {phase}", batch=batch)
        return result

    def commit_at_point(self: Any, id_: Any, **first: Any) -> Any:
        status = commit(self, id_, **first)
        reach("after one commit", **now)
        return status

    module._answer = answer_at_points
    module.Servers._commit = commit_at_point
    module.Servers._each = lambda self, call, ids: {id_: call(id_) for id_ in ids}  # one by one


PATCHES: dict[str, Callable[[Any], None]] = {
    "pravega_connector.writer.transactions": _patch_transactions,
    "pravega_connector.exactly_once.batch_commit.servers": _patch_ledger,
    "pravega_connector.spark.sink.transactions": _patch_tasks,
    "pravega_connector.spark.jvm.task_writes": _patch_jvm_tasks,
}


class _Finder(MetaPathFinder):
    """Wraps a module when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        patch = PATCHES.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
