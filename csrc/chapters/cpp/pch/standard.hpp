// SPDX-License-Identifier: BSD-3-Clause
// Precompiled for all programs, each of which includes for itself what it uses.
#include "../chapter.hpp"
#include <algorithm>
#include <deque>
#include <random>
#include <thread>
