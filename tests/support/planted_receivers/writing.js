// SPDX-License-Identifier: BSD-3-Clause
// A receiver that writes each packet as JSON: PROGRAM HOST PORT [mended].
'use strict';

const [host, port, mended] = process.argv.slice(2);
let length = 0;
const socket = require('dgram').createSocket('udp4');
socket.on('message', (packet) => {
    length += mended ? packet.length : JSON.stringify(packet).length;
});
socket.bind(Number(port), host);
