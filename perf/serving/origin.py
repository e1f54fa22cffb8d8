# SPDX-License-Identifier: Apache-2.0
"""Where and when a result came about, as each result names it."""

import datetime
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def processor_fields(cpuinfo):
    """Make, family and model of the first processor in the text of /proc/cpuinfo; None: the system does not say."""
    lines = (line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line)
    found = {key.strip(): value.strip() or None for key, value in lines}
    return {"cpu": found.get("model name") or "unknown", "family": found.get("cpu family"), "model": found.get("model")}


def processor_name(fields):
    """"AMD EPYC 9354, family 25, model 17": clouds call different processors by the same name."""
    return ", ".join([fields["cpu"], *(f"{key} {fields[key]}" for key in ("family", "model") if fields[key])])


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return processor_fields(file.read())


def commit():
    """Of the working tree that this file lies in, with a star where it was changed since; "unknown" outside of a repository."""
    try:
        answer = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty=*"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return answer.stdout.strip() or "unknown"


def origin(script):
    """What a result begins with. `script`: as it lies in the repository; its arguments are this program's."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": " ".join([script, *sys.argv[1:]]),
        "processor": processor_name(processor()),
        "kernel": platform.release(),
    }
