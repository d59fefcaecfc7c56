"""The ledger: an index of the lake's manifests in SQL, and what people decided.

Here belong the tables, their migrations and the questions asked of them. Publications, days and arrivals can be
rebuilt from the lake at any time (`platform_assets.ledger.sync` does); holds and decisions live only here, and so do
the platform's own notes, of what it announced for one.
"""
