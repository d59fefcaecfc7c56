"""The ledger: an index of the lake's manifests in SQL, and people's decisions.

Put here the tables, their migrations and queries. Publications, days and arrivals can be rebuilt from the lake at any
time (`platform_assets.ledger.sync` does); holds and decisions are only here, and so are the platform's own notes, such
as its announcements.
"""
