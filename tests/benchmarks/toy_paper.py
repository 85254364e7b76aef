"""A paper with one claim: three seeds of two strategies, one of which can be interrupted at work."""

CLAIMS = """
paper: toy
title: Toy et al.
scenarios:
  pair:
    seeds: 3
    problem: {name: quadratic, centres: [[-1.0], [1.0], [0.5]], noise: 0.1}
    timing: {durations: {name: fx, spread: 80}}
    budget: {updates: 400}
    evaluations: 4
    strategies: [fedavg, {name: "sluggish:Slow", pause: 0.004}]
claims:
  - id: T-better/slow
    place: §1
    statement: Synchronous averaging ends nearer to the optimum.
    kind: better
    clock: updates
    rates: stated
    arrangement: paper
    looks: [3]
    scenario: pair
    metric: distance
    a: {strategy: fedavg}
    b: {strategy: "sluggish:Slow"}
"""
