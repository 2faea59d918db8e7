// SPDX-License-Identifier: BSD-3-Clause
// Two threads with one socket, which has a lock: each waits for the other.
class OneSocket {
    public static void main(String[] words) throws Exception {
        Sending first = new Sending(words);
        for (int begin = 1; begin <= 2; begin++) {
            long from = begin;
            Sending sender = first.mended ? new Sending(words) : new Sending(words, first.socket);
            Sending.start(() -> {
                for (long i = from; i <= sender.heaps; i += 2)
                    sender.fill(i).send();
            });
        }
    }
}
