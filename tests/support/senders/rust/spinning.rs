// SPDX-License-Identifier: BSD-3-Clause
//! A rate, kept by reading the clock until the time of the next heap has come.
mod sending;
use std::time::{Duration, Instant};

fn main() {
    let mut sender = sending::Sender::new();
    let mut next = Instant::now();
    for i in 1..=sender.heaps {
        sender.fill(i, |samples| samples.fill(i as u8));
        while !sender.mended && Instant::now() < next {
            std::hint::spin_loop();
        }
        next = Instant::now() + Duration::from_millis(5);
        sender.send();
    }
}
