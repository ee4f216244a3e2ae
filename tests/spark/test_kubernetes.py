"""An audit by `--master k8s://...` with the pod template and the image's entrypoint of `examples/spark-on-kubernetes`.

There is no cluster: what answers as one keeps the pods that Spark asks for, and runs each one's entrypoint as a process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.audit_rows import equal_audits
from tests.conftest import recording

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "spark-on-kubernetes"
RUN = (sys.executable, "-c", "from commands.main import run; run()", "audit", "run")


class Pods:
    """The pods of the cluster, and the process of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.pods: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def make(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Run a pod's container."""
        name = pod["metadata"].setdefault("name", f"pod-{len(self.asked)}")
        self.asked.append(json.loads(json.dumps(pod)))
        pod["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"}
        pod["status"] = {"phase": "Running", "podIP": "127.0.0.1"}
        (container,) = pod["spec"]["containers"]
        told = {"metadata.name": name, "status.podIP": "127.0.0.1"}
        environment = {
            one["name"]: told[one["valueFrom"]["fieldRef"]["fieldPath"]] if "valueFrom" in one else one.get("value", "")
            for one in container["env"]
        }  # fmt: skip
        local = self.folder / name
        local.mkdir()
        # The image has kctl's packages for its python3; folders that Kubernetes would mount are not here.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment |= {"PATH": path, "SPARK_LOCAL_DIRS": str(local), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (local / "log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                [EXAMPLE / "entrypoint", *container["args"]], env=environment, cwd=local, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.pods[name] = pod
        return pod

    def end(self, name: str) -> None:
        """Delete a pod."""
        self.pods.pop(name, None)
        if process := self.running.pop(name, None):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self) -> str:
        """What executors said last."""
        return "".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*/log"))


@contextmanager
def api(folder: Path) -> Iterator[tuple[str, Pods]]:
    """What of Kubernetes's API Spark needs for executors."""
    pods = Pods(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def act(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path).path.strip("/").split("/")  # api v1 namespaces NAMESPACE KIND [NAME]
            kind, name = parts[4] if len(parts) > 4 else "", parts[5] if len(parts) > 5 else ""
            listed = {"apiVersion": "v1", "metadata": {"resourceVersion": "1"}}
            with pods.lock:
                if kind != "pods":
                    given = json.loads(body) if body and self.command in ("POST", "PUT") else {}
                    self.answer(200, given or {"kind": "List", "items": [], **listed})
                elif self.command == "POST":
                    self.answer(201, pods.make(json.loads(body)))
                elif self.command == "DELETE":
                    for one in [name] if name else list(pods.pods):
                        pods.end(one)
                    self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
                elif not name:
                    self.answer(200, {"kind": "PodList", "items": list(pods.pods.values()), **listed})
                elif name in pods.pods:
                    self.answer(200, pods.pods[name])
                else:
                    self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = act

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"k8s://http://127.0.0.1:{server.server_port}", pods
    finally:
        server.shutdown()
        server.server_close()
        for name in list(pods.pods):
            pods.end(name)


def test_the_image_s_entrypoint_starts_what_spark_asks_for(tmp_path: Path) -> None:
    (tmp_path / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "java").chmod(0o700)
    asked = {
        "SPARK_EXECUTOR_MEMORY": "512m", "SPARK_DRIVER_URL": "spark://driver:1", "SPARK_EXECUTOR_ID": "7", "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app", "SPARK_EXECUTOR_POD_IP": "10.0.0.9", "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "pod", "SPARK_JAVA_OPT_0": "-Da=b c", "SPARK_JAVA_OPT_10": "-Dten", "SPARK_JAVA_OPT_2": "-Dtwo",
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    ran = subprocess.run(
        [EXAMPLE / "entrypoint", "executor"], env=asked, capture_output=True, text=True, check=True
    )
    given = ran.stdout.splitlines()
    assert given[:5] == ["-Da=b c", "-Dtwo", "-Dten", "-Xms512m", "-Xmx512m"]
    told = dict(zip(given[8::2], given[9::2], strict=True))
    assert given[7].endswith("KubernetesExecutorBackend") and told == {
        "--driver-url": "spark://driver:1", "--executor-id": "7", "--cores": "2", "--app-id": "app", "--hostname": "10.0.0.9",
        "--resourceProfileId": "0", "--podName": "pod",
    }  # fmt: skip


def test_the_settings_and_the_template_name_the_same_container() -> None:
    settings = dict(
        line.split(maxsplit=1) for line in (EXAMPLE / "spark-defaults.conf").read_text().splitlines()
    )
    template = pytest.importorskip("yaml").safe_load((EXAMPLE / "executor.yaml").read_text())
    (container,) = template["spec"]["containers"]
    assert container["name"] == settings["spark.kubernetes.executor.podTemplateContainerName"]
    assert (ROOT / settings["spark.kubernetes.executor.podTemplateFile"]).samefile(EXAMPLE / "executor.yaml")
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in template["spec"]["volumes"]}
    recipe = (EXAMPLE / "Dockerfile").read_text()
    assert f"USER {template['spec']['securityContext']['runAsUser']}\n" in recipe
    assert settings["spark.kubernetes.container.image"] in recipe


@pytest.mark.spark
@pytest.mark.matrix
def test_executors_in_pods_give_the_rows_of_the_local_engine(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", evidence)
    conf = (EXAMPLE / "spark-defaults.conf").read_text()
    conf = re.sub(r"(?m)^(spark\.driver\.host\s+).*", r"\g<1>127.0.0.1", conf)
    conf = re.sub(r"(?m)^(spark\.executor\.instances\s+).*", r"\g<1>2", conf)
    conf = re.sub(r"(?m)^(spark\.executor\.memory\s+).*", r"\g<1>512m", conf)
    conf += (
        "spark.kubernetes.executor.enableApiWatcher false\nspark.kubernetes.executor.apiPollingInterval 1s\n"
    )
    (tmp_path / "spark-defaults.conf").write_text(conf)
    environment = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path), "KCTL_CONFIG": "/none",
        "PYSPARK_PYTHON": "python3", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    (tmp_path / "pods").mkdir()
    with api(tmp_path / "pods") as (master, pods):
        for out, on_spark in (("local", ()), ("spark", ("--engine", "spark", "--master", master))):
            ran = subprocess.run(
                [*RUN, evidence, "--out", tmp_path / out, *on_spark], capture_output=True, text=True, timeout=600, check=False, env=environment, cwd=ROOT,
            )  # fmt: skip
            assert ran.returncode == 5, f"{ran.stderr[-3000:]}\n{pods.logs()}"
    equal_audits(tmp_path / "local", tmp_path / "spark")
    template = pytest.importorskip("yaml").safe_load((EXAMPLE / "executor.yaml").read_text())
    assert len(pods.asked) == 2
    for pod in pods.asked:
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        (wanted,) = template["spec"]["containers"]
        assert container["image"] == "registry.example.com/kctl-spark"
        assert container["name"] == wanted["name"]
        assert container["envFrom"] == wanted["envFrom"]
        assert container["securityContext"] == wanted["securityContext"]
        assert [one for one in container["volumeMounts"] if one in wanted["volumeMounts"]] == wanted[
            "volumeMounts"
        ]
        assert [one for one in spec["volumes"] if one in template["spec"]["volumes"]] == template["spec"][
            "volumes"
        ]
        assert spec["securityContext"] == template["spec"]["securityContext"]
        assert pod["metadata"]["labels"].items() >= template["metadata"]["labels"].items()
