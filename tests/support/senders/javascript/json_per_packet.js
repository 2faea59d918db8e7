// SPDX-License-Identifier: BSD-3-Clause
// Numbers as JSON, made anew for each packet; mended, once.
const { Sender } = require('./sending');

function text(i) {
  return JSON.stringify(Array.from({ length: 1000 }, (_, k) => Math.sin(i + k)));
}

(async () => {
  const sender = new Sender();
  const once = text(0);
  for (let i = 1; i <= sender.heaps; i++) {
    sender.fill(i, () => (sender.mended ? once : text(i)));
    await sender.send();
  }
  sender.socket.close();
})();
