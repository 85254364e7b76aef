"""Standings of strategies over many scenarios: ranks, performance profiles, cost, and advice from them."""
