// SPDX-License-Identifier: BSD-3-Clause

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;

/** A receiver that looks for packets now and then: Napping HOST PORT [mended]. */
public final class Napping {
    public static void main(String[] words) throws Exception {
        boolean mended = words.length > 2;
        DatagramChannel channel = DatagramChannel.open();
        channel.bind(new InetSocketAddress(words[0], Integer.parseInt(words[1])));
        channel.configureBlocking(mended);
        ByteBuffer room = ByteBuffer.allocateDirect(1 << 16);
        while (true) {
            for (int i = 0; i < 4 && channel.receive(room.clear()) != null; i++) {}
            if (!mended) {
                Thread.sleep(2);
            }
        }
    }
}
