# SPDX-License-Identifier: BSD-3-Clause
# What the planted senders in Perl share: HOST PORT HEAPS [mended], and heaps of 1 MiB as they are
# sent, packet after packet.
package sending;
use strict;
use warnings;
use IO::Socket::INET;
use parent 'Exporter';

use constant { HEAP_SIZE => 1 << 20, PACKET_SIZE => 9000, OFFLOAD => 103 };    # UDP_SEGMENT
use constant HEADER  => 48;    # 8 bytes and five items: count, length, offset, length here, the samples
use constant PAYLOAD => PACKET_SIZE - HEADER;
use constant MESSAGE => int(65507 / PACKET_SIZE) * PACKET_SIZE;

our ($heaps, $mended) = @ARGV[2, 3];
my $socket = IO::Socket::INET->new(Proto => 'udp', PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die $@;
setsockopt($socket, 17, OFFLOAD, pack 'i', PACKET_SIZE) or die "no segmentation offload: $!";

our @EXPORT = qw($heaps $mended send_heap HEAP_SIZE);

# Send a heap with some samples.
sub send_heap {
    my ($count, $samples) = @_;
    my $wire = '';
    for (my $offset = 0; $offset < HEAP_SIZE; $offset += PAYLOAD) {
        my $piece = substr $samples, $offset, PAYLOAD;
        $wire .= pack('Q>6', 0x5304030500000005,
            (map { 1 << 63 | $_->[0] << 40 | $_->[1] }
                [1, $count], [2, HEAP_SIZE], [3, $offset], [4, length $piece]),
            0x3300 << 40) . $piece;
    }
    for (my $at = 0; $at < length $wire; $at += MESSAGE) {
        defined send $socket, substr($wire, $at, MESSAGE), 0 or die "send: $!";
    }
}

1;
