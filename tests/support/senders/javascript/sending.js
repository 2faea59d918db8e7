// SPDX-License-Identifier: BSD-3-Clause
// What the planted senders in JavaScript share: HOST PORT HEAPS [mended], and heaps of 1 MiB that
// lie in memory as they are sent, packet after packet. Node has no segmentation offload.
const dgram = require('dgram');

const HEAP_SIZE = 1 << 20;
const PACKET_SIZE = 9000;
const HEADER = 48; // 8 bytes and five items: count, length, offset, length here, the samples
const PAYLOAD = PACKET_SIZE - HEADER;

class Sender {
  // Nothing is wrong with it.
  constructor() {
    const [host, port, heaps, mended] = process.argv.slice(2);
    Object.assign(this, { heaps: Number(heaps), mended: mended !== undefined });
    this.wire = Buffer.alloc(HEAP_SIZE + Math.ceil(HEAP_SIZE / PAYLOAD) * HEADER);
    this.socket = dgram.createSocket('udp4');
    this.connected = new Promise((done) => this.socket.connect(Number(port), host, done));
  }

  // Write a heap: its headers, and its samples, which make() returns or writes for each packet.
  fill(count, make) {
    const immediate = (id, value) => (1n << 63n) | (BigInt(id) << 40n) | BigInt(value);
    for (let at = 0, offset = 0; at < this.wire.length; at += PACKET_SIZE, offset += PAYLOAD) {
      const packet = this.wire.subarray(at, at + PACKET_SIZE);
      [
        0x5304030500000005n, immediate(1, count), immediate(2, HEAP_SIZE),
        immediate(3, offset), immediate(4, packet.length - HEADER), 0x3300n << 40n,
      ].forEach((word, i) => packet.writeBigUInt64BE(word, 8 * i));
      packet.subarray(HEADER).fill(make(count));
    }
  }

  // Send the heap, and wait until it has gone.
  async send() {
    await this.connected;
    const sent = [];
    for (let at = 0; at < this.wire.length; at += PACKET_SIZE) {
      sent.push(new Promise((done, failed) => {
        const packet = this.wire.subarray(at, at + PACKET_SIZE);
        this.socket.send(packet, (error) => (error ? failed(error) : done()));
      }));
    }
    await Promise.all(sent);
  }
}

module.exports = { Sender, PAYLOAD };
