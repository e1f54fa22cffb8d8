#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Teams beside one thread and beside independent instances, and what the model of their cost says, model by model: `starling profile --nodes
--threads` of each ONNX file, and what all of them say together.

    perf/teams/teams.py --starling build/release/bin/starling --zoo build/zoo --out build/teams.json

With --splits it says what a team gains where the tuner has timed the parts of steps: plans of `tune: quick` whose splits are guessed, and
others whose splits are timed, are compiled and measured in turns.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serving"))
import origin  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starling", required=True, metavar="FILE", help="run the command FILE (required)")
    parser.add_argument("--zoo", required=True, metavar="DIR", help="take the models from DIR, as NAME.onnx (required)")
    parser.add_argument(
        "--out", required=True, metavar="FILE",
        help="write the result to FILE after each model, and keep the models that it has (required)",
    )
    parser.add_argument("--models", metavar="NAMES", help="measure the models NAMES, separated by commas (default: all)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="run batches of N samples (default: %(default)s)")
    parser.add_argument("--splits", action="store_true", help="compare timed splits with guessed ones")
    parser.add_argument(
        "--turns", type=int, default=3, metavar="N",
        help="take N turns of timed and guessed splits, with --splits (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds", type=float, default=2, metavar="SECONDS",
        help="run each profile and the turns for SECONDS seconds (default: %(default)s)",
    )
    return parser.parse_args()


def profile(arguments, name, *options):
    command = [arguments.starling, "profile", os.path.join(arguments.zoo, name + ".onnx"), "--nodes", "--threads", "1", "--json",
               "--batch", str(arguments.batch), "--seconds", str(arguments.seconds), *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def row_of(name, said):
    """Of a profile what is worth keeping."""
    team = said["teams"][-1]
    return {
        "model": name,
        "batch": said["batch"],
        "cores": said["cores"],
        "alone_ms": said["alone_ns"] / 1e6,
        "team_ms": said["team_ns"] / 1e6,
        "instances_ms_a_batch": said["singles_ns"] / 1e6,
        "team_speedup": said["alone_ns"] / said["team_ns"],
        "instances_speedup": said["alone_ns"] / said["singles_ns"],
        "of_instances": said["singles_ns"] / said["team_ns"],
        "model_ms": team["model_ns"] / 1e6,
        "model_off_percent": team["difference_percent"],
        "steps": len(team["steps"]),
        "calls": sum(step["calls"] for step in team["steps"]),
        "barrier_us": said["barrier_ns"] / 1e3,
        "shared_gb_per_second": said["shared_bytes_per_second"] / 1e9,
    }


def compare_splits(arguments, name):
    """A team by guessed splits and by timed ones: medians of the turns, and in how many steps they differ."""
    ways = {"guessed": "1", "timed": "0"}
    said = {way: [] for way in ways}
    for _ in range(arguments.turns):
        for way, size in ways.items():
            said[way].append(profile(arguments, name, "-O", "tune=quick", "-O", "team_size=" + size))
    cuts = {way: [(step["split"], step["parts"]) for step in said[way][0]["teams"][-1]["steps"]] for way in ways}
    team = {way: statistics.median(turn["team_ns"] for turn in said[way]) for way in ways}
    alone = {way: statistics.median(turn["alone_ns"] for turn in said[way]) for way in ways}
    return {"model": name, "batch": arguments.batch, "turns": arguments.turns, "guessed_ms": team["guessed"] / 1e6,
            "timed_ms": team["timed"] / 1e6, "gain": team["guessed"] / team["timed"],
            "gain_of_speedup": alone["timed"] / team["timed"] / (alone["guessed"] / team["guessed"]), "steps": len(cuts["timed"]),
            "steps_cut_otherwise": sum(a != b for a, b in zip(cuts["guessed"], cuts["timed"]))}


def summary_of_splits(rows):
    return {"gain_geomean": geomean([row["gain"] for row in rows]),
            "gain_of_speedup_geomean": geomean([row["gain_of_speedup"] for row in rows]),
            "gain_least": min((row["gain"], row["model"]) for row in rows)}


def geomean(numbers):
    return math.exp(sum(math.log(number) for number in numbers) / len(numbers))


def summary_of(rows):
    off = [row["model_off_percent"] for row in rows]
    return {
        "of_instances_geomean": geomean([row["of_instances"] for row in rows]),
        "of_instances_least": min((row["of_instances"], row["model"]) for row in rows),
        "team_speedup_geomean": geomean([row["team_speedup"] for row in rows]),
        "model_off_percent_median": sorted(off)[len(off) // 2],
        "model_off_percent_range": [min(off), max(off)],
    }


def main():
    arguments = parse_arguments()
    names = sorted(file[:-5] for file in os.listdir(arguments.zoo) if file.endswith(".onnx"))
    names = arguments.models.split(",") if arguments.models else names
    result = {**origin.origin("perf/teams/teams.py"), "rows": []}
    if os.path.exists(arguments.out):
        with open(arguments.out, encoding="utf-8") as file:
            result["rows"] = json.load(file)["rows"]
    done = {(row["model"], row["batch"]) for row in result["rows"]}
    for name in names:
        if (name, arguments.batch) in done:
            continue
        row = compare_splits(arguments, name) if arguments.splits else row_of(name, profile(arguments, name))
        result["rows"].append(row)
        result["summary"] = (summary_of_splits if arguments.splits else summary_of)(result["rows"])
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        if arguments.splits:
            print(f"{name:20} guessed {row['guessed_ms']:8.2f} ms, timed {row['timed_ms']:8.2f} ({row['gain']:.3f} x), "
                  f"{row['steps_cut_otherwise']} of {row['steps']} steps cut otherwise", flush=True)
            continue
        print(f"{name:20} alone {row['alone_ms']:8.2f} ms, team {row['team_ms']:8.2f} ({row['team_speedup']:.2f} x), instances "
              f"{row['instances_speedup']:.2f} x, of which {row['of_instances']:.2f}; model {row['model_off_percent']:+.0f} %, "
              f"{row['calls']} calls", flush=True)


if __name__ == "__main__":
    main()
