# SPDX-License-Identifier: Apache-2.0
"""The bound of accuracy under a load: a linear programme, small enough to look at each vertex."""

import itertools


def best_mix(capacities, accuracies, load, cores):
    """The greatest mean accuracy of variants that answer `load` together: no more of each than it can alone, and no more of all than `cores` workers are
    busy. None where they cannot. A vertex of the polytope has at most two of them neither empty nor full."""
    names, best = list(capacities), None

    def consider(shares):
        nonlocal best
        if all(-1e-9 <= shares[n] <= capacities[n] + 1e-9 for n in names) and abs(sum(shares.values()) - load) <= 1e-6 * load:
            if sum(shares[n] / capacities[n] for n in names) <= cores + 1e-9:
                mean = sum(shares[n] * accuracies[n] for n in names) / load
                best = mean if best is None or mean > best else best

    for state in itertools.product((0, 1, None), repeat=len(names)):
        free = [name for name, s in zip(names, state) if s is None]
        fixed = {name: capacities[name] * s for name, s in zip(names, state) if s is not None}
        left, room = load - sum(fixed.values()), cores - sum(fixed[n] / capacities[n] for n in fixed)
        if not free:
            consider(fixed)
        elif len(free) == 1:
            consider({**fixed, free[0]: left})
        elif len(free) == 2:
            a, b = free
            slope = 1 / capacities[a] - 1 / capacities[b]
            if abs(slope) > 1e-15:
                x = (room - left / capacities[b]) / slope
                consider({**fixed, a: x, b: left - x})
    return best
