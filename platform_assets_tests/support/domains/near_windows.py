"""The tables of `windows` under a contract of before, or of after, that settles no moves between days."""

from dataclasses import replace

from platform_assets_tests.support.domains import windows

RAW, *OTHERS = windows.TABLES
DOMAIN = replace(windows.DOMAIN, tables=(replace(RAW, moves_within_days=0), *OTHERS))
