# SPDX-License-Identifier: BSD-3-Clause
# The data comes from another program, which gives it a few times in a second; mended, at once.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use sending;

my $program = 'while (1) { select undef, undef, undef, $ARGV[0]; print "x" x (1 << 20) or exit }';
open my $input, '-|', $^X, '-e', $program, $mended ? 0 : 0.02 or die $!;
for my $i (1 .. $heaps) {
    read $input, my $samples, HEAP_SIZE or die $!;
    send_heap($i, $samples);
}
