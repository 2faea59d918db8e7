// SPDX-License-Identifier: BSD-3-Clause

// A receiver that logs lines for each packet: PROGRAM HOST PORT [mended].
package main

import (
	"log"
	"net"
	"os"
)

func main() {
	at, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	socket, err := net.ListenUDP("udp4", at)
	if err != nil {
		log.Fatal(err)
	}
	out, err := os.CreateTemp("", "log")
	if err != nil {
		log.Fatal(err)
	}
	os.Remove(out.Name())
	each, room := 1, make([]byte, 1<<16)
	if len(os.Args) > 3 {
		each = 100000
	}
	for n := 0; ; n++ {
		if _, _, err := socket.ReadFromUDP(room); err != nil {
			log.Fatal(err)
		}
		if n%each == 0 {
			for i := 0; i < 16; i++ {
				out.WriteString("a packet\n")
			}
		}
	}
}
