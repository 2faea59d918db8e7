// SPDX-License-Identifier: BSD-3-Clause
// What the planted senders in Java share: HOST PORT HEAPS [mended], and heaps of 1 MiB that lie in
// memory as they are sent, packet after packet. Java has no segmentation offload.
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.Arrays;

class Sending {
    static final int HEAP_SIZE = 1 << 20, PACKET_SIZE = 9000;
    static final int HEADER = 48; // 8 bytes and five items: count, length, offset, length here, the samples
    static final int PAYLOAD = PACKET_SIZE - HEADER;

    final DatagramSocket socket;
    final long heaps;
    final boolean mended;
    final byte[] wire = new byte[HEAP_SIZE + (HEAP_SIZE + PAYLOAD - 1) / PAYLOAD * HEADER];

    Sending(String[] words) throws Exception {
        this(words, new DatagramSocket());
        socket.connect(InetAddress.getByName(words[0]), Integer.parseInt(words[1]));
    }

    /** Several can have one socket. */
    Sending(String[] words, DatagramSocket socket) {
        this.socket = socket;
        heaps = Long.parseLong(words[2]);
        mended = words.length > 3;
    }

    /** Writes a heap of equal samples. */
    Sending fill(long count) {
        for (int at = 0, offset = 0; at < wire.length; at += PACKET_SIZE, offset += PAYLOAD) {
            int end = Math.min(at + PACKET_SIZE, wire.length);
            ByteBuffer header = ByteBuffer.wrap(wire, at, HEADER).putLong(0x5304030500000005L);
            header.putLong(immediate(1, count)).putLong(immediate(2, HEAP_SIZE));
            header.putLong(immediate(3, offset)).putLong(immediate(4, end - at - HEADER));
            header.putLong(0x3300L << 40);
            Arrays.fill(wire, at + HEADER, end, (byte) count);
        }
        return this;
    }

    private static long immediate(long id, long value) {
        return 1L << 63 | id << 40 | value;
    }

    void send() throws Exception {
        for (int at = 0; at < wire.length; at += PACKET_SIZE)
            send(at);
    }

    /** Sends a packet of the heap. */
    void send(int at) throws Exception {
        socket.send(new DatagramPacket(wire, at, Math.min(PACKET_SIZE, wire.length - at)));
    }

    /** What threads run. */
    interface Work {
        void run() throws Exception;
    }

    static void start(Work work) {
        new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        }).start();
    }
}
