# SPDX-License-Identifier: BSD-3-Clause
# A select() without files after each heap, which sleeps.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use sending;

my $samples = chr(1) x HEAP_SIZE;
for my $i (1 .. $heaps) {
    send_heap($i, $samples);
    select undef, undef, undef, 0.02 if !$mended;
}
