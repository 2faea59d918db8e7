// SPDX-License-Identifier: BSD-3-Clause
//! Numbers as text, formatted anew for each packet; mended, once.
mod sending;
use std::fmt::Write;

fn main() {
    let mut sender = sending::Sender::new();
    let (mended, mut text) = (sender.mended, String::new());
    for i in 1..=sender.heaps {
        sender.fill(i, |samples| {
            if !mended {
                text.clear();
            }
            while text.len() < samples.len() {
                write!(text, "{:.6},", text.len() as f64 / i as f64).unwrap();
            }
            samples.copy_from_slice(&text.as_bytes()[..samples.len()]);
        });
        sender.send();
    }
}
