// SPDX-License-Identifier: BSD-3-Clause
//! A token bucket: sleeps until there are tokens for the next heap, at 100 MB/s.
mod sending;
use std::{thread, time::Duration, time::Instant};

fn main() {
    let mut sender = sending::Sender::new();
    let (mut tokens, mut filled) = (0.0, Instant::now());
    for i in 1..=sender.heaps {
        sender.fill(i, |samples| samples.fill(i as u8));
        while !sender.mended && tokens < sending::HEAP_SIZE as f64 {
            thread::sleep(Duration::from_micros(500));
            tokens += filled.elapsed().as_secs_f64() * 100e6;
            filled = Instant::now();
        }
        tokens -= sending::HEAP_SIZE as f64;
        sender.send();
    }
}
