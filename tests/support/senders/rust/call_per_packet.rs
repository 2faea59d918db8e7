// SPDX-License-Identifier: BSD-3-Clause
//! A system call for each packet; mended, for each message of as many as fit.
mod sending;

fn main() {
    let mut sender = sending::Sender::new();
    sender.offload(sender.mended);
    for i in 1..=sender.heaps {
        sender.fill(i, |samples| samples.fill(i as u8));
        sender.send();
    }
}
