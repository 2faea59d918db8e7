// SPDX-License-Identifier: BSD-3-Clause
// A timer flushes what is to be sent every few milliseconds; mended, as soon as there is something.
import java.util.concurrent.ArrayBlockingQueue;

class FlushTimer {
    public static void main(String[] words) throws Exception {
        Sending first = new Sending(words), second = new Sending(words, first.socket);
        ArrayBlockingQueue<Sending> full = new ArrayBlockingQueue<>(2), empty = new ArrayBlockingQueue<>(2);
        empty.add(first);
        empty.add(second);
        Sending.start(() -> {
            while (true) {
                if (!first.mended)
                    Thread.sleep(5);
                Sending heap = full.take();
                heap.send();
                empty.put(heap);
            }
        });
        for (long i = 1; i <= first.heaps; i++)
            full.put(empty.take().fill(i));
    }
}
