# SPDX-License-Identifier: Apache-2.0
"""E2bird, sections 3 and 8, simulated: policies of batching on six networks of a GPU.

    policies.py [--only ResNet152,VGG16] [--gpu titan-rtx] [--seeds 5] [--out FILE.json] [--program FILE]

Simulated from perf/profiles/elastic-GPU.yaml, which is derived from published figures and not measured, and two figures of derive.py: how batches slow each
other down (contention) and what TF-Serving's style copies in the host's memory (host_copy_ns). opt_wait is TF-Serving's, no_wait and static are
section 3's. Medians of seeds.
"""

import json
import os
import statistics
import subprocess

import derive
import ebird_figures as paper
import experiment
import networks

POLICIES = ["no_wait", "opt_wait", "static", "triton", "n_ebird", "e_ebird", "work_conserving", "starling"]
DRAWN = ["opt_wait", "n_ebird", "e_ebird", "starling"]
LOADS = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9]
STABLE, QOS_REQUESTS = 4000, 4000
LOW_LOAD = 0.15  # of what TF-Serving's style carries at the QoS, which is the high load
BOUND_LOAD, NEAR = 0.7, 1.1
SAME = 0.0005  # of what is printed with three places


class Bench:
    def __init__(self, options):
        self.program, self.seeds = options.program, range(1, options.seeds + 1)
        self.costs = os.path.join(derive.HERE, f"elastic-{options.gpu}.yaml")

    def run(self, network, seed, *what):
        command = [self.program, self.costs, network.name, derive.contention(), derive.host_copy_ns(network), seed, *what]
        output = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(output)

    def runs(self, network, *what):
        return [self.run(network, seed, *what) for seed in self.seeds]


def median_phases(runs, n):
    """{policy: [{figure: ms} of each phase]}, and "bound" beside the policies."""
    def of(rows):
        return {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}

    phases = {policy: [of([run["policies"][policy]["phases"][i] for run in runs]) for i in range(n)] for policy in POLICIES}
    return {**phases, "bound": [of([run["bound"][i] for run in runs]) for i in range(n)]}


def qos(bench, network):
    """Section 8.3: a stable load."""
    runs = bench.runs(network, "qos", paper.QOS_MS, QOS_REQUESTS)
    rates = {policy: round(statistics.median(run["rates"][policy] for run in runs), 2) for policy in POLICIES}
    return {"capacity": runs[0]["capacity"], "engine": runs[0]["engine"], "delay_us": runs[0]["delay_us"], "rates": rates}


def diurnal(bench, network, high):
    """Section 8.2: a low load, then a high one."""
    runs = bench.runs(network, f"{LOW_LOAD * high:.3f}:{paper.LOW}", f"{high:.3f}:{paper.HIGH}")
    drawn = {policy: " ".join(f"{ms:.1f}" for ms in runs[0]["policies"][policy]["latencies_ms"]) for policy in DRAWN}
    return {"low_rate": round(LOW_LOAD * high, 2), "high_rate": high, "phases": median_phases(runs, 2), "latencies_ms": drawn}


def stable(bench, network, capacity):
    loads = []
    for load in LOADS:
        phases = median_phases(bench.runs(network, f"{load * capacity:.3f}:{STABLE}"), 1)
        loads.append({"load": load, **{name: figures[0] for name, figures in phases.items()}})
    return loads


def measure(bench, network):
    made = {"network": network.name, **qos(bench, network)}
    made["diurnal"] = diurnal(bench, network, made["rates"]["opt_wait"])
    made["stable"] = stable(bench, network, made["capacity"])
    return made


# What is printed


def less(made, phase, policy, other):
    """How much less the mean latency of @policy is, of 1."""
    phases = made["diurnal"]["phases"]
    return 1 - phases[policy][phase]["mean_ms"] / phases[other][phase]["mean_ms"]


def more(made, policy, other):
    return made["rates"][policy] / made["rates"][other] - 1


def span(values):
    return f"{min(values):6.1%} to {max(values):6.1%}"


def print_diurnal(rows):
    print(f"Figure 13: {paper.LOW} requests at a low rate, {paper.HIGH} at the highest that opt_wait carries within {paper.QOS_MS} ms; ms")
    print(f"{'':12} {'':16} | {'low: mean':>9} {'p50':>7} {'p99':>7} | {'high: mean':>10} {'p50':>7} {'p99':>7}")
    for made in rows:
        for policy in POLICIES:
            low, high = made["diurnal"]["phases"][policy]
            print(f"{made['network']:12} {policy:16} | {low['mean_ms']:9.1f} {low['p50_ms']:7.1f} {low['p99_ms']:7.1f} | {high['mean_ms']:10.1f} "
                  f"{high['p50_ms']:7.1f} {high['p99_ms']:7.1f}")  # fmt: skip


def print_rates(rows):
    print(f"\nFigure 14: requests a second of which 99 in 100 are answered within {paper.QOS_MS} ms")
    print(f"{'':12} " + " ".join(f"{policy:>15}" for policy in POLICIES))
    for made in rows:
        print(f"{made['network']:12} " + " ".join(f"{made['rates'][policy]:15.0f}" for policy in POLICIES))


def print_stable(rows):
    print("\nStable loads, of 32 / T(32): p99 in ms; the bound knows all arrivals (runtime/sim/least_latency.h)")
    names = [*POLICIES, "bound"]
    print(f"{'':12} {'load':>5} " + " ".join(f"{name:>15}" for name in names))
    for made in rows:
        for row in made["stable"]:
            print(f"{made['network']:12} {row['load']:5.0%} " + " ".join(f"{row[name]['p99_ms']:15.1f}" for name in names))


def print_paper(rows):
    print("\nBeside the paper, which measured on a TITAN RTX; ours is simulated")
    for text, published, ours in (
        ("mean latency at low load, N-Ebird to TF-Serving, less by", paper.N_LOW, [less(made, 0, "n_ebird", "opt_wait") for made in rows]),
        ("  at high load", paper.N_HIGH, [less(made, 1, "n_ebird", "opt_wait") for made in rows]),
        ("  at high load, E-Ebird to N-Ebird", paper.E_HIGH, [less(made, 1, "e_ebird", "n_ebird") for made in rows]),
        ("  at high load, starling to TF-Serving", None, [less(made, 1, "starling", "opt_wait") for made in rows]),
        ("  at high load, starling to work_conserving", None, [less(made, 1, "starling", "work_conserving") for made in rows]),
    ):
        print(f"{text:58} paper {span(published) if published else '-':18} ours {span(ours)}")
    for text, published, policy, other in (
        ("throughput at the QoS, N-Ebird to TF-Serving, mean, more by", paper.N_THROUGHPUT, "n_ebird", "opt_wait"),
        ("  E-Ebird to N-Ebird", paper.E_THROUGHPUT, "e_ebird", "n_ebird"),
        ("  starling to TF-Serving", None, "starling", "opt_wait"),
        ("  starling to work_conserving, which has its data path", None, "starling", "work_conserving"),
    ):
        mean = statistics.mean(more(made, policy, other) for made in rows)
        print(f"{text:58} paper {format(published, '6.1%') if published else '-':18} ours {mean:6.1%}")
    for made in rows:
        if made["network"] == "ResNet152":
            print(f"table 4, ResNet152: paper {paper.ENGINE['rows']}, engine {paper.ENGINE['workers']}")
            print(f"                    ours  {made['engine']['rows']}, engine {made['engine']['workers']}")


def claims(made):
    """Section 3, figure 2."""
    low, high = ({policy: made["diurnal"]["phases"][policy][phase]["mean_ms"] for policy in POLICIES} for phase in (0, 1))
    return {
        "NO_Wait is faster than OPT_Wait at low load": low["no_wait"] < low["opt_wait"],
        "OPT_Wait is faster than NO_Wait at high load": high["opt_wait"] < high["no_wait"],
        "Static is slower than OPT_Wait at both": low["static"] > low["opt_wait"] and high["static"] > high["opt_wait"],
    }


def print_claims(rows):
    print("\nSection 3, what the paper says of TF-Serving's three policies (of ResNet152), and on how many of our networks it is so, simulated")
    for text in claims(rows[0]):
        print(f"{text:46} {sum(claims(made)[text] for made in rows)} of {len(rows)}")


def goal(text, missed):
    print(f"{'missed' if missed else 'met   '}  {text}" + (f": {', '.join(missed)}" if missed else ""))
    return {"goal": text, "missed": missed}


def over(row, figure):
    """How much more starling's is than the better of the two."""
    return row["starling"][figure] / min(row["n_ebird"][figure], row["e_ebird"][figure]) - 1


def missed_order(made):
    """E-Ebird before N-Ebird before TF-Serving, by mean latency at both loads and by throughput; at low load the two are similar."""
    found = []
    if min(less(made, 0, policy, "opt_wait") for policy in ("n_ebird", "e_ebird")) <= 0:
        found.append("low load")
    if less(made, 1, "n_ebird", "opt_wait") <= 0 or less(made, 1, "e_ebird", "n_ebird") <= 0:
        found.append("high load")
    if more(made, "n_ebird", "opt_wait") <= 0 or more(made, "e_ebird", "n_ebird") <= 0:
        found.append("throughput")
    return [f"{made['network']} {what}" for what in found]


def goals(rows):
    print("\nGoals")
    pairs = [(made, row) for made in rows for row in made["stable"]]
    near = [(made, row) for made, row in pairs if row["load"] == BOUND_LOAD]
    return [
        goal("the paper's order: E-Ebird, N-Ebird, TF-Serving", [name for made in rows for name in missed_order(made)]),
        *(goal(f"starling's {figure} at least as good as the better of N-Ebird and E-Ebird at every load",
               [f"{made['network']} at {row['load']:.0%} by {over(row, f'{figure}_ms'):.1%}" for made, row in pairs if over(row, f"{figure}_ms") > SAME])
          for figure in ("mean", "p99")),
        goal("starling carries at least what any of them does within the QoS",
             [made["network"] for made in rows if more(made, "starling", max(POLICIES, key=made["rates"].get)) < 0]),
        goal(f"starling's p99 within 10 % of the clairvoyant bound at {BOUND_LOAD:.0%}",
             [f"{made['network']} {row['starling']['p99_ms'] / row['bound']['p99_ms']:.2f} times" for made, row in near
              if row["starling"]["p99_ms"] > NEAR * row["bound"]["p99_ms"]]),
    ]  # fmt: skip


def main():
    options = experiment.read_arguments(
        __doc__, program="bench-policies", only=",".join(network.name for network in networks.E2BIRD), gpu="titan-rtx", seeds=5
    )
    chosen = [network for network in networks.E2BIRD if network.name in options.only.split(",")]
    bench = Bench(options)
    rows = [measure(bench, network) for network in chosen]
    for show in (print_diurnal, print_rates, print_stable, print_claims, print_paper):
        show(rows)
    result = {**experiment.head("policies", live=False), "profile": os.path.basename(bench.costs), "contention": derive.contention(),
              "seeds": options.seeds, "networks": rows,
              "claims": {made["network"]: claims(made) for made in rows}, "goals": goals(rows)}  # fmt: skip
    experiment.write(result, options.out)


if __name__ == "__main__":
    main()
