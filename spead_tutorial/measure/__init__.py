# SPDX-License-Identifier: BSD-3-Clause
"""The measuring wing: the one way in which tour, harness, notebooks and command line measure.

``records`` are what is kept, and ``stats`` what is said of their numbers. Then each file needs only
those before it: ``machine`` (facts, and a record's header), ``running`` (programs and what they
say), ``place`` (where they send to, and who counts), ``verify`` (what they claim, and whether it
holds), ``programs`` (running one), ``case`` (one program at one setting, and what observes it),
``baselines`` (what it is compared with), ``delivery`` (a receiver), ``search`` (the highest rate
without loss), ``rounds`` (all cases in seeded random rounds), ``timeline`` (when heaps were sent)
and ``analysis`` (what records say).
"""
