// SPDX-License-Identifier: BSD-3-Clause
// A timeout after each heap.
const { Sender } = require('./sending');
const { setTimeout } = require('timers/promises');

(async () => {
  const sender = new Sender();
  for (let i = 1; i <= sender.heaps; i++) {
    sender.fill(i, () => i % 256);
    await sender.send();
    if (!sender.mended) await setTimeout(20);
  }
  sender.socket.close();
})();
