# SPDX-License-Identifier: BSD-3-Clause
# Random samples for each heap; mended, once.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use sending;

my $samples;
for my $i (1 .. $heaps) {
    $samples = pack 'L*', map { rand 2**32 } 1 .. HEAP_SIZE / 4 if !$mended || $i == 1;
    send_heap($i, $samples);
}
