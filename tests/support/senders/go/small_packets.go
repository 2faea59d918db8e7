// SPDX-License-Identifier: BSD-3-Clause

// Packets of 1 KiB, without segmentation offload; mended, of 9000 bytes, with it.
package main

func main() {
	s, samples := newSender(), make([]byte, heapSize)
	if !s.mended {
		s.cut(1024, false)
	}
	for i := uint64(1); i <= s.heaps; i++ {
		s.fill(i, samples)
		s.send()
	}
}
