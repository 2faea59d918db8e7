// SPDX-License-Identifier: BSD-3-Clause
// A thread makes the data, more slowly than the other could send it, and hands it over in a queue.
import java.util.concurrent.ArrayBlockingQueue;

class SlowProducer {
    public static void main(String[] words) throws Exception {
        Sending first = new Sending(words), second = new Sending(words, first.socket);
        ArrayBlockingQueue<Sending> full = new ArrayBlockingQueue<>(2), empty = new ArrayBlockingQueue<>(2);
        empty.add(first);
        empty.add(second);
        Sending.start(() -> {
            for (long i = 1; i <= first.heaps; i++) {
                Sending heap = empty.take().fill(i);
                double sum = 0;
                for (int k = 0; k < 200_000 && !heap.mended; k++)
                    sum += Math.sin(i + 0.01 * k);
                heap.wire[Sending.HEADER] = (byte) sum;
                full.put(heap);
            }
        });
        for (long i = 1; i <= first.heaps; i++) {
            Sending heap = full.take();
            heap.send();
            empty.put(heap);
        }
    }
}
