# SPDX-License-Identifier: Apache-2.0
"""What Starling is to be beside its peers, computed from a result: each goal with its figure, whether it is met, and the rival that decided."""

from registry import PEERS
from workloads import WORKLOADS, samples_of

PLANES = ("Unix socket", "pipe", "eventfd")


def _goal(text, figure, limit, at_least, rival=None):
    """`figure` None: not measured, and `rival` says why."""
    met = None if figure is None else bool(figure >= limit if at_least else figure <= limit)
    return {"goal": text, "figure": figure and float(f"{figure:.4g}"), "limit": limit, "at_least": at_least, "met": met, "rival": rival}


# ---- what the cells say


def native_us(found, workload, peer):
    rows = [row for row in found["native"] if row["workload"] == workload and row["peer"] == peer and "why" not in row]
    return rows[0]["p50_us"] if rows else None


def native_why(found, workload, peer):
    rows = [row for row in found["native"] if row["workload"] == workload and row["peer"] == peer]
    return f"{peer}: {rows[0].get('why', 'measured')}" if rows else f"{peer}: not asked"


def fastest_triton(found):
    """(name, p50) of the fastest way through Triton that a no-op has, by its native client; None when there is none."""
    rows = [row for row in found["native"] if row["peer"].startswith("Triton") and "why" not in row]
    return min(((row["peer"], row["p50_us"]) for row in rows), key=lambda pair: pair[1], default=None)


def points_of(found, workload, samples, peer, mode):
    for cell in found["cells"]:
        if (cell["workload"], cell["samples"], cell["peer"]) == (workload, samples, peer):
            return [point for point in cell["points"] if point["mode"] == mode and "why" not in point]
    return []


def lone_us(found, workload, samples, peer):
    """p50 of one client in a closed loop."""
    points = [point for point in points_of(found, workload, samples, peer, "closed") if point["clients"] == 1]
    return points[0]["p50_us"] if points else None


def within_objective(found, workload, samples, peer):
    """Requests a second of the best closed point whose p99 keeps the objective; 0 when none does, None when none was measured."""
    points = points_of(found, workload, samples, peer, "closed")
    kept = [point["per_second"] for point in points if point["p99_us"] <= 1e3 * WORKLOADS[workload].objective_ms]
    return max(kept, default=0) if points else None


def beside_us(found, workload, samples, peer):
    points = points_of(found, workload, samples, peer, "beside")
    return points[0]["beside_us"] if points else None


def open_p99_us(found, workload, samples, peer):
    points = points_of(found, workload, samples, peer, "open")
    return points[0]["p99_us"] if points else None


def _rivals(figure, names):
    """{title: value} of the peers that have the figure."""
    return {PEERS[name].title: value for name in names if (value := figure(name)) is not None}


def _servers():
    return [name for name, peer in PEERS.items() if peer.server and name != "starling"]


# ---- the goals


def triton_over_starling_noop(found):
    triton, own = fastest_triton(found), native_us(found, "noop", "starling")
    return float(f"{triton[1] / own:.4g}") if triton and own else None


def _ratio_goal(found, text, rival, own, limit, at_least):
    """Of two native no-ops: the rival's time over ours, or ours over it where it is to be at most the limit."""
    theirs = native_us(found, "noop", rival)
    if own is None or theirs is None:
        return _goal(text, None, limit, at_least, native_why(found, "noop", rival))
    return _goal(text, theirs / own if at_least else own / theirs, limit, at_least, f"{rival}: {theirs:.3f} us, Starling {own:.3f} us")


def _aeron_goal(found, own):
    """Each over the bare ring that was measured beside it, as the CPUs move between the two runs."""
    text = "no-op, C: Starling over Aeron's IPC, each over the bare ring of its run"
    names = ("bare ring", "Aeron IPC", "bare ring beside Aeron")
    ring, aeron, other_ring = (native_us(found, "noop", name) for name in names)
    if not (own and ring and aeron and other_ring):
        return _goal(text, None, 1, False, native_why(found, "noop", "Aeron IPC"))
    return _goal(text, (own / ring) / (aeron / other_ring), 1, False, f"Aeron {aeron / other_ring:.2f}, Starling {own / ring:.2f} rings")


def _noop_goals(found):
    own, triton = native_us(found, "noop", "starling"), fastest_triton(found)
    rival = f"{triton[0]}: {triton[1]:.1f} us" if triton else "Triton was not asked"
    goals = [
        _goal("no-op, C: Triton's best way over Starling", triton_over_starling_noop(found), 400, True, rival),
        _ratio_goal(found, "no-op, C: Starling over the bare ring of the same run", "bare ring", own, 1.25, False),
        _aeron_goal(found, own),
    ]
    goals += [_ratio_goal(found, f"no-op, C: {plane} over Starling", plane, own, 10, True) for plane in PLANES]
    own, theirs = lone_us(found, "noop", 1, "starling"), lone_us(found, "noop", 1, "iceoryx2")
    figure = own / theirs if own and theirs else None
    goals.append(_goal("16 floats, Python: Starling with a model over iceoryx2 without", figure, 1, False, theirs and f"iceoryx2: {theirs:.1f} us"))
    servers = _rivals(lambda name: lone_us(found, "noop", 1, name), [name for name in _servers() if name != "iceoryx2"])
    return goals + _least_over(servers, own, "16 floats, Python: the fastest other server over Starling", 10)


def _least_over(rivals, own, text, limit):
    if not rivals or not own:
        return [_goal(text, None, limit, True, "not measured")]
    name = min(rivals, key=rivals.get)
    return [_goal(text, rivals[name] / own, limit, True, f"{name}: {rivals[name]:.4g} us")]


def _throughput_goals(found):
    goals, servers = [], [name for name in PEERS if name == "queues" or name.startswith("triton")]
    for samples in samples_of("digits"):
        own = within_objective(found, "digits", samples, "starling")
        rivals = {name: rate for name, rate in _rivals(lambda name: within_objective(found, "digits", samples, name), servers).items() if rate}
        text = f"digits, {samples} samples: throughput over the best of Triton and the queues"
        if not own or not rivals:
            goals.append(_goal(text, None, 1.5, True, "not measured"))
            continue
        name = max(rivals, key=rivals.get)
        goals.append(_goal(text, own / rivals[name], 1.5, True, f"{name}: {rivals[name]:.0f}/s"))
    return goals


def _beside_goal(found):
    own = beside_us(found, "ensemble", 1, "starling")
    rivals = _rivals(lambda name: beside_us(found, "ensemble", 1, name), _servers())
    return _least_over(rivals, own, "ensemble of four: least time beside the models of another server over Starling's", 5)


def _open_goals(found):
    goals = []
    for workload in WORKLOADS:
        for samples in samples_of(workload):
            own = open_p99_us(found, workload, samples, "starling")
            rivals = _rivals(lambda name: open_p99_us(found, workload, samples, name), [name for name in PEERS if name != "starling"])
            if own and rivals:
                name = min(rivals, key=rivals.get)
                text = f"{workload}, {samples} samples, open load: p99 over the best peer's"
                goals.append(_goal(text, own / rivals[name], 1, False, f"{name}: {rivals[name] / 1e3:.2f} ms"))
    return goals


def of(found):
    return _noop_goals(found) + _throughput_goals(found) + _beside_goal(found) + _open_goals(found)
