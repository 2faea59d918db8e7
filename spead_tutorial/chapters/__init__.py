# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' programs: ``tut_N_name.py``, each with the C program ``tut_N_name``."""
