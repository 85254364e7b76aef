"""The page's parts on where numbers come from: overview, methods and errata, provenance."""
