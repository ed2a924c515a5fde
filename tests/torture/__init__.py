"""Campaigns against elmokit: damaged files, kills, full disks, two writers, wild text, servers with tricks.

`make torture` runs them for MINUTES; `tests/test_torture.py` a small share of each.
"""
