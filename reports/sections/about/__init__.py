"""The page's parts on where numbers come from: overview, methods, errata, provenance."""
