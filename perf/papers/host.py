# SPDX-License-Identifier: Apache-2.0
"""The machine, as every result names it."""


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{fields.get('model name')}, family {fields.get('cpu family')}, model {fields.get('model')}"
