"""The image's entrypoint, the pod template and the settings of `examples/spark-on-kubernetes`; no cluster is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "spark-on-kubernetes"


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
