# SPDX-License-Identifier: Apache-2.0
"""What merging copies of one network gains on this host, as `starling fuse` measures it: each plan by itself, one after another as one job, merged.

    fuse_table.py [--copies 32] [--seconds 20] [--batch 8] [--networks_of_digits mlp,lenet,...] [--out FILE.json] [--program FILE]

The copies have weights of their own. Every number of lanes is compiled and measured for the first so many of them, medians of turns on one core. Nothing is served
here: what a request takes besides is netfuse.py's to measure.
"""

import json
import os
import subprocess
import tempfile

import experiment
from netfuse import write_copies

NETWORKS = ["mlp", "lenet", "resnet", "mobilenet", "densenet"]


def fuse(options, files, folder):
    """What `starling fuse` says of the files, without a cache that others have filled."""
    command = [options.program, "fuse", "--json", "--seconds", str(options.seconds), "--batch", str(options.batch), *files]
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def gains(trial):
    """One job over merged, by batch, for each number of occupied lanes."""
    table = trial["table"]
    return {
        row["batch"]: {lanes: round(one / merged, 2) for lanes, one, merged in zip(table["occupied"], row["one_job_seconds"], row["merged_seconds"])}
        for row in table["rows"]
    }


def show(name, trials):
    for trial in trials:
        lanes = f"{name:10} {trial['lanes']:2} lanes"
        if not trial["merged"]:
            print(f"{lanes}: not merged: {trial['cause']}", flush=True)
            continue
        by_batch = "; ".join(f"batch {batch}: " + ", ".join(f"{gain:.2f} of {n}" for n, gain in row.items()) for batch, row in gains(trial).items())
        bytes_more = trial["weights_bytes"] / trial["single_weights_bytes"]
        print(f"{lanes}: {trial['merged_nodes']} of {trial['common_nodes']} nodes; {by_batch}; weights {bytes_more:.2f} x the single ones", flush=True)


def measure(options, name, folder):
    (group,) = fuse(options, write_copies(name, options.copies, folder).values(), folder)["groups"]
    trials = [trial for trial in group["trials"] if trial["first"] == 0]
    show(name, trials)
    return {"network": name, "copies": options.copies, "trials": trials}


def main():
    options = experiment.read_arguments(__doc__, copies=32, seconds=20.0, batch=8, networks_of_digits=",".join(NETWORKS))
    rows = []
    for name in options.networks_of_digits.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(options, name, folder))
    experiment.write({**experiment.head("fuse_table"), "seconds": options.seconds, "batch": options.batch, "rows": rows}, options.out)


if __name__ == "__main__":
    main()
