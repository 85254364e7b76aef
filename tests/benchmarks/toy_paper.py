"""A paper with one claim: three seeds of two strategies, one of which can be interrupted at work."""

from pathlib import Path

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
    workload: paper
    looks: [3]
    scenario: pair
    metric: distance
    a: {strategy: fedavg}
    b: {strategy: "sluggish:Slow"}
"""


def write_claims(folder: Path) -> Path:
    """A folder of claims with that paper in it."""
    claims = folder / "claims"
    claims.mkdir()
    (claims / "toy.yaml").write_text(CLAIMS)
    return claims


def take_numbers(claims: Path) -> dict[str, list[str]]:
    """Value and run of each claim, sample and seed; they are gone then, for another command to compute."""
    file = claims / "results" / "toy-small.csv"
    rows = [line.split(",") for line in file.read_text().splitlines() if line.startswith("T-")]
    file.unlink()
    return {",".join(row[:3]): row[3:5] for row in rows}
