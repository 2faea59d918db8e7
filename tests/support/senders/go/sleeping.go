// SPDX-License-Identifier: BSD-3-Clause

// A sleep after each heap.
package main

import "time"

func main() {
	s, samples := newSender(), make([]byte, heapSize)
	for i := uint64(1); i <= s.heaps; i++ {
		s.fill(i, samples)
		s.send()
		if !s.mended {
			time.Sleep(5 * time.Millisecond)
		}
	}
}
