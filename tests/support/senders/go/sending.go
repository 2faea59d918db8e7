// SPDX-License-Identifier: BSD-3-Clause

// What the planted senders in Go share: HOST PORT HEAPS [mended], and heaps of 1 MiB that lie in
// memory as they are sent, packet after packet.
package main

import (
	"encoding/binary"
	"net"
	"os"
	"strconv"
	"syscall"
)

const (
	heapSize   = 1 << 20
	packetSize = 9000
	header     = 48 // 8 bytes and five items: count, length, offset, length here, the samples
)

type sender struct {
	conn            *net.UDPConn
	heaps           uint64
	mended          bool
	packet, message int // bytes of a packet, and in a call
	wire            []byte
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Nothing is wrong with it.
func newSender() *sender {
	conn, err := net.Dial("udp", net.JoinHostPort(os.Args[1], os.Args[2]))
	must(err)
	heaps, err := strconv.ParseUint(os.Args[3], 10, 64)
	must(err)
	s := &sender{conn: conn.(*net.UDPConn), heaps: heaps, mended: len(os.Args) > 4}
	s.cut(packetSize, true)
	return s
}

// Have heaps cut into packets of a size, with segmentation offload or without.
func (s *sender) cut(packet int, offload bool) {
	segment := 0
	s.packet, s.message = packet, packet
	if offload {
		segment, s.message = packet, 65507/packet*packet
	}
	s.wire = make([]byte, heapSize+(heapSize+packet-header-1)/(packet-header)*header)
	raw, err := s.conn.SyscallConn()
	must(err)
	must(raw.Control(func(fd uintptr) {
		must(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_UDP, 103, segment)) // UDP_SEGMENT
	}))
}

// Write a heap: its headers, and its samples, which are a copy of some.
func (s *sender) fill(count uint64, samples []byte) {
	offset := 0
	for at := 0; at < len(s.wire); at += s.packet {
		packet := s.wire[at:min(at+s.packet, len(s.wire))]
		immediate := func(id, value uint64) uint64 { return 1<<63 | id<<40 | value }
		for i, word := range [...]uint64{
			0x5304030500000005, immediate(1, count), immediate(2, heapSize),
			immediate(3, uint64(offset)), immediate(4, uint64(len(packet)-header)), 0x3300 << 40,
		} {
			binary.BigEndian.PutUint64(packet[8*i:], word)
		}
		offset += copy(packet[header:], samples[offset:])
	}
}

func (s *sender) send() {
	for at := 0; at < len(s.wire); at += s.message {
		_, err := s.conn.Write(s.wire[at:min(at+s.message, len(s.wire))])
		must(err)
	}
}
