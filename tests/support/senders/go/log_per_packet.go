// SPDX-License-Identifier: BSD-3-Clause

// A log line for each packet.
package main

import "log"

func main() {
	s, samples := newSender(), make([]byte, heapSize)
	for i := uint64(1); i <= s.heaps; i++ {
		s.fill(i, samples)
		for at := 0; at < len(s.wire) && !s.mended; at += s.packet {
			log.Printf("heap %d: packet at %d", i, at)
		}
		s.send()
	}
}
