# SPDX-License-Identifier: BSD-3-Clause
"""The measuring wing: the one way in which tour, harness, notebooks and command line measure.

Each file needs only those before it: ``place`` (where programs send to, and who counts),
``report`` and ``verify`` (what they claim, and whether it holds), ``programs`` (running one),
``case`` (one program at one setting), ``machine`` (facts, and a record's header), ``rounds`` (all
cases in seeded random rounds) and ``summary`` (what the samples of a case come to).
"""
