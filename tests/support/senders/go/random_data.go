// SPDX-License-Identifier: BSD-3-Clause

// A random number for each sample.
package main

import "math/rand"

func main() {
	s, samples := newSender(), make([]byte, heapSize)
	for i := uint64(1); i <= s.heaps; i++ {
		for k := 0; k < heapSize && !s.mended; k++ {
			samples[k] = byte(rand.NormFloat64() * 50)
		}
		s.fill(i, samples)
		s.send()
	}
}
