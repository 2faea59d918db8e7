// SPDX-License-Identifier: BSD-3-Clause
//! What the planted senders in Rust share: HOST PORT HEAPS [mended], and heaps of 1 MiB that lie in
//! memory as they are sent, packet after packet.
#![allow(dead_code)]
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

pub const HEAP_SIZE: usize = 1 << 20;
pub const PACKET_SIZE: usize = 9000;
const HEADER: usize = 48; // 8 bytes and five items: count, length, offset, length here, the samples
pub const PAYLOAD: usize = PACKET_SIZE - HEADER;

extern "C" {
    fn setsockopt(fd: i32, level: i32, option: i32, value: *const i32, length: u32) -> i32;
}

pub struct Sender {
    pub socket: UdpSocket,
    pub heaps: u64,
    pub mended: bool,
    message: usize, // bytes in a call: of one packet, or of as many as fit
    wire: Vec<u8>,
}

impl Sender {
    /// Nothing is wrong with it.
    pub fn new() -> Sender {
        let words: Vec<String> = std::env::args().collect();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket
            .connect(format!("{}:{}", words[1], words[2]))
            .unwrap();
        let (heaps, mended) = (words[3].parse().unwrap(), words.len() > 4);
        let mut made = Sender {
            socket,
            heaps,
            mended,
            message: 0,
            wire: Vec::new(),
        };
        made.offload(true);
        made
    }

    /// Send with segmentation offload, or without.
    pub fn offload(&mut self, on: bool) {
        self.message = if on {
            65507 / PACKET_SIZE * PACKET_SIZE
        } else {
            PACKET_SIZE
        };
        let segment = if on { PACKET_SIZE as i32 } else { 0 };
        let done = unsafe { setsockopt(self.socket.as_raw_fd(), 17, 103, &segment, 4) }; // UDP_SEGMENT
        assert!(done == 0, "no segmentation offload");
    }

    /// Write a heap: its headers, and its samples, which make() writes for each packet.
    pub fn fill(&mut self, count: u64, mut make: impl FnMut(&mut [u8])) {
        self.wire
            .resize(HEAP_SIZE + HEAP_SIZE.div_ceil(PAYLOAD) * HEADER, 0);
        for (k, packet) in self.wire.chunks_mut(PACKET_SIZE).enumerate() {
            let (header, samples) = packet.split_at_mut(HEADER);
            let immediate = |id: u64, value: u64| 1 << 63 | id << 40 | value;
            let (offset, here) = ((k * PAYLOAD) as u64, samples.len() as u64);
            let words = [
                0x5304030500000005,
                immediate(1, count),
                immediate(2, HEAP_SIZE as u64),
                immediate(3, offset),
                immediate(4, here),
                0x3300 << 40,
            ];
            for (place, word) in header.chunks_exact_mut(8).zip(words) {
                place.copy_from_slice(&u64::to_be_bytes(word));
            }
            make(samples);
        }
    }

    pub fn send(&self) {
        for message in self.wire.chunks(self.message) {
            self.socket.send(message).unwrap();
        }
    }
}
