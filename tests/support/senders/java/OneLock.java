// SPDX-License-Identifier: BSD-3-Clause
// Two threads, each with a socket of its own, but one fair lock for both, which each takes for a
// packet: each waits for the other.
import java.util.concurrent.locks.ReentrantLock;

class OneLock {
    public static void main(String[] words) throws Exception {
        ReentrantLock shared = new ReentrantLock(true);
        for (int first = 1; first <= 2; first++) {
            int begin = first;
            Sending.start(() -> {
                Sending sender = new Sending(words);
                ReentrantLock lock = sender.mended ? new ReentrantLock(true) : shared;
                for (long i = begin; i <= sender.heaps; i += 2) {
                    sender.fill(i);
                    for (int at = 0; at < sender.wire.length; at += Sending.PACKET_SIZE) {
                        lock.lock();
                        sender.send(at);
                        lock.unlock();
                    }
                }
            });
        }
    }
}
