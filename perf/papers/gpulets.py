# SPDX-License-Identifier: Apache-2.0
"""Figures 4, 12, 15 and 16 of gpu-lets (Choi et al., USENIX ATC 2022), simulated: which part of which device computes which models.

    gpulets.py [--profiles 2080ti,h100,cpu-16,cpu-64] [--only SCENARIOS] [--rates 0,200,400,600] [--sweep 1] [--out FILE.json] [--program FILE]

Simulated from perf/profiles/lets-PROFILE.yaml, which are derived and not measured; nothing that these figures report went into them. `scheduled` is the highest
multiple of a scenario's rates that a scheduler calls schedulable; `in time` the highest of 25 multiples up to that with at most 1 % of Poisson
arrivals late or dropped, medians of three seeds, lets of a GPU in each other's way as the authors' model of interference has it. Applications are
rates: a request of `game` is six of LeNet and one of ResNet50, all within 95 ms; of `traffic` one of each, SSD within 69 ms, the others within 67.

Readings: `paper` is section 4.3's text, cycle + own batch; `authors` what their code does (planner/lets/partition.h). --sweep 1, the default: each of
the authors' choices alone, and what the 2080 Ti's table assumes.
"""

import json
import math
import os
import subprocess
import tempfile

import experiment
import lets
import networks

PROFILES = os.path.join(experiment.HERE, "..", "profiles")
SCENARIOS = {
    "equal": {"LeNet": 50, "GoogLeNet": 50, "ResNet50": 50, "SSD-MobileNet": 50, "VGG16": 50},
    "long-only": {"ResNet50": 100, "SSD-MobileNet": 100, "VGG16": 100},
    "short-skew": {"LeNet": 100, "GoogLeNet": 100, "ResNet50": 100, "SSD-MobileNet": 50, "VGG16": 50},
    "game": {"LeNet": 6, "ResNet50": 1},
    "traffic": {"SSD-MobileNet": 1, "GoogLeNet": 1, "VGG16": 1},
}
WAYS = ["sbp", "sbp_halves", "self_tuning", "elastic", "elastic_int", "ideal", "ideal_int", "starling", "starling_int"]

# What was published: means over the five scenarios (section 6.2); game in requests a second; of figure 15 how many fewer of 1,023 than ideal.
PAPER = {"elastic_int/sbp": 2.026, "elastic/sbp": 2.06, "elastic_int/self_tuning": 1.748, "elastic_int/ideal": 0.923, "traffic elastic_int/ideal": 0.877,
         "game elastic_int/sbp": 1502 / 720, "fewer than ideal": 18}  # fmt: skip
OPTIONS = ["all_batches=1", "factor=1.1", "dropped=15", "places=3", "by_work=1", "by_gain=1", "merges_last=1", "takes_smaller=1"]
ASSUMED = {"knee": (0.75, 1.0, 1.33), "serial": (0.0, 0.1, 0.2)}


def objectives(profile, formula):
    """Milliseconds: twice what a batch of 32 takes on a whole device, as the paper has it."""
    whole = {
        "2080ti": lambda n: lets.turing_latencies(n, 1)[-1],
        "h100": lambda n: lets.hopper_latency(formula, n, 32, lets.HOPPER_ATOMS * lets.HOPPER_ATOM),
    }.get(profile, lambda n: lets.host_latency(n, 32, lets.CORES_PER_CACHE))
    return {network.name: 2e3 * whole(network) for network in networks.GPULETS}


def of_application(name, times):
    """Of an application's models its own: that of the longest model, which traffic's two stages divide as 69 and 67 of 136 ms."""
    if name == "game":
        return {**times, "LeNet": times["ResNet50"]}
    if name == "traffic":
        longest = times["SSD-MobileNet"]
        return {**times, "SSD-MobileNet": longest * 69 / 136, "GoogLeNet": longest * 67 / 136, "VGG16": longest * 67 / 136}
    return times


def listed(values):
    return ",".join(f"{value:.6g}" for value in values)


def bench(options, path, *words):
    command = [options.program, path, *map(str, words)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def scenario(options, path, times, name, *more):
    times = of_application(name, times)
    rates = [SCENARIOS[name].get(network.name, 0) for network in networks.GPULETS]
    return bench(options, path, "max", listed(rates), f"objectives={listed(times[n.name] for n in networks.GPULETS)}", *more)


def mean(values):
    """Geometric; None: there is none, or one is nothing."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values and all(value and value > 0 for value in values) else None


def shown(value, form="6.2f"):
    return format(value, form) if value is not None else "     -"


def ratio(rows, a, b, field="scheduled"):
    pick = lambda made, way: made["bound"] if way == "bound" else made[way][field]  # noqa: E731
    return mean(pick(made, a) / pick(made, b) if pick(made, b) else 0 for made in rows.values())


def figure_12(options, profile, path, times, reading, more):
    """Multiples of the rates by scenario, and means of their ratios."""
    print(f"\nFigures 12 and 16, simulated, {profile}, reading: {reading}. Multiples of the rates: scheduled / in time; violated at the former")
    print(f"{'':11} {'bound':>7} " + " ".join(f"{way:>21}" for way in WAYS))
    rows = {}
    for name in options.only:
        rows[name] = made = scenario(options, path, times, name, *more)
        print(f"{name:11} {made['bound']:7.1f} " + " ".join(
            f"{made[way]['scheduled']:7.1f}/{made[way]['in_time']:6.1f} {made[way]['violated']:6.1%}" for way in WAYS), flush=True)  # fmt: skip
    ratios = {f"{a}/{b}": {field: ratio(rows, a, b, field) for field in ("scheduled", "in_time")} for a, b in (
        ("elastic", "sbp"), ("elastic_int", "sbp"), ("elastic_int", "self_tuning"), ("elastic_int", "ideal_int"), ("elastic", "ideal"),
        ("starling", "elastic"), ("starling_int", "elastic_int"), ("starling", "sbp_halves"), ("starling", "bound"))}  # fmt: skip
    print(f"{'geometric means':26} {'paper':>6} {'scheduled':>10} {'in time':>8}")
    for name, values in ratios.items():
        published = PAPER.get(name.replace("ideal_int", "ideal"))
        in_time = None if "bound" in name else values["in_time"]
        print(f"{name:26} {shown(published)} {shown(values['scheduled'], '10.2f')} {shown(in_time, '8.2f')}", flush=True)
    return {"profile": profile, "reading": reading, "scenarios": rows, "means": ratios}


def half_scale(options, path, scenarios):
    """The scale at which the ideal schedules about half of the scenarios."""
    low, high = 0.25, 16
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        more = bench(options, path, "count", options.rates, middle, "ways=ideal")["ideal"]["schedulable"] > scenarios / 2
        low, high = (middle, high) if more else (low, middle)
    return low


def figure_15(options, profile, path):
    print(f"\nFigures 4 and 15, simulated, {profile}: of all scenarios with each model at {options.rates} requests a second, schedulable\n"
          "(paper: elastic_int 18 fewer than ideal)")  # fmt: skip
    first = bench(options, path, "count", options.rates, 1)
    made = {1.0: first}
    scale = half_scale(options, path, first["scenarios"])
    made[round(scale, 3)] = bench(options, path, "count", options.rates, scale)
    print(f"{'scale':>6} {'all':>5} {'bound':>6} " + " ".join(f"{way:>12}" for way in WAYS))
    for scale, counts in made.items():
        print(f"{scale:6.2f} {counts['scenarios']:5} {counts['bound']:6} " + " ".join(f"{counts[way]['schedulable']:12}" for way in WAYS), flush=True)
    return {"profile": profile, "counts": {str(scale): counts for scale, counts in made.items()}}


def swept_row(options, path, times, label, *more):
    rows = {name: scenario(options, path, times, name, "simulate=0", *more)
            for name in options.only}  # fmt: skip
    made = {f"{a}/{b}": ratio(rows, a, b) for a, b in (
        ("elastic", "sbp"), ("elastic_int", "sbp"), ("elastic_int", "self_tuning"), ("elastic_int", "ideal_int"), ("starling", "elastic"),
        ("starling", "sbp_halves"), ("starling_int", "elastic_int"), ("starling", "bound"))}  # fmt: skip
    made["levels"] = {way: mean(row[way]["scheduled"] for row in rows.values()) for way in WAYS}
    print(f"{label:16} " + " ".join(f"{shown(value, '24.2f')}" for name, value in made.items() if name != "levels"), flush=True)
    return made


def sweep(options, path, times):
    heads = ("elastic/sbp", "elastic_int/sbp", "elastic_int/self_tuning", "elastic_int/ideal_int", "starling/elastic", "starling/sbp_halves",
             "starling_int/elastic_int", "starling/bound")  # fmt: skip
    print("\nSweep, 2080ti: geometric means of ratios of what is scheduled, each option of the authors' code alone, then what the table assumes")
    print(f"{'':16} " + " ".join(f"{head:>24}" for head in heads))
    made = {"options": {option: swept_row(options, path, times, option, option) for option in ["authors=0", *OPTIONS, "authors=1"]}, "assumed": {}}
    for knee in ASSUMED["knee"]:
        for serial in ASSUMED["serial"]:
            with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
                file.write(lets.turing_table(knee, serial))
                file.flush()
                made["assumed"][f"knee {knee}, serial {serial}"] = swept_row(options, file.name, times, f"{knee} / {serial}")
    return made


def goal(text, missed):
    print(f"{'missed' if missed else 'met   '}  {text}" + (f": {', '.join(missed)}" if missed else ""))
    return {"goal": text, "missed": missed}


def goals(tables, counts):
    print("\nGoals")
    named = [(f"{table['profile']}, {table['reading']}", table) for table in tables]
    below = [f"{where}, {name}" for where, table in named for name, row in table["scenarios"].items()
             if row["starling"]["scheduled"] < 0.995 * max(row[way]["scheduled"] for way in ("sbp", "sbp_halves", "self_tuning", "elastic"))]  # fmt: skip
    means = lambda pair, least: [f"{where}: {shown(table['means'][pair]['scheduled']).strip()}" for where, table in named  # noqa: E731
                                 if not (table["means"][pair]["scheduled"] or 0) >= least]  # fmt: skip
    fewer = [f"{made['profile']} x {scale}: {row['ideal']['schedulable'] - row['starling']['schedulable']}" for made in counts
             for scale, row in made["counts"].items() if row["ideal"]["schedulable"] - row["starling"]["schedulable"] > 5]  # fmt: skip
    return [
        goal("starling never below a baseline", below),
        goal("1.2 x elastic in the mean", means("starling/elastic", 1.2)),
        goal("0.9 of the bound in the mean", means("starling/bound", 0.9)),
        goal("at most 5 scenarios fewer than the ideal", fewer),
    ]


def main():
    options = experiment.read_arguments(
        __doc__, program="bench-lets", profiles="2080ti,h100,cpu-16,cpu-64", only=",".join(SCENARIOS), rates="0,200,400,600", sweep=1
    )
    options.only, options.profiles = options.only.split(","), options.profiles.split(",")
    formula = lets.hopper_formula()
    tables, counts = [], []
    for profile in options.profiles:
        path, times = os.path.join(PROFILES, f"lets-{profile}.yaml"), objectives(profile, formula)
        tables += [figure_12(options, profile, path, times, reading, more) for reading, more in (("paper", []), ("authors", ["authors=1"]))]
        if profile == "2080ti":
            counts.append(figure_15(options, profile, path))
    result = {
        **experiment.head("gpulets", live=False),
        "profile": ", ".join(options.profiles),
        "paper": PAPER,
        "figure_12": tables,
        "figure_15": counts,
        "sweep": sweep(options, os.path.join(PROFILES, "lets-2080ti.yaml"), objectives("2080ti", formula)) if options.sweep else None,
        "goals": goals(tables, counts),
    }
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
