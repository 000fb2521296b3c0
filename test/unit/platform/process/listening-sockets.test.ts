import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isLocalPlace,
  parseListeningRows,
  tcpInodes,
  unixInodes,
} from '../../../../src/platform/process/listening-sockets.js';

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';

function row(address: string, port: number, inode: number, state = '0A'): string {
  const local = `${address}:${port.toString(16).padStart(4, '0').toUpperCase()}`;
  return `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 x 100 0 0 10 0\n`;
}

/** As a processor prints addresses that keeps the lowest byte first. */
const rows = parseListeningRows(
  head +
    row('0100007F', 9090, 11) +
    row('00000000', 80, 12) +
    row('00000000', 9090, 13) +
    row('0100007F', 81, 14, '01') +
    row('00000000000000000000000001000000', 9090, 15) +
    row('00000000000000000000000000000000', 443, 16) +
    row('0000000000000000FFFF00000100007F', 82, 17) +
    'rubbish\n',
);

describe('the listening sockets of TCP', () => {
  it('are those of the very address before those of all addresses', () => {
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.1', port: 9090 }), ['11']);
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.2', port: 9090 }), ['13']);
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.1', port: 80 }), ['12']);
    assert.deepEqual(tcpInodes(rows, { host: '::1', port: 9090 }), ['15']);
  });

  it('are also those of IPv6 that take connections of IPv4', () => {
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.1', port: 443 }), ['16']);
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.1', port: 82 }), ['17']);
    assert.deepEqual(tcpInodes(rows, { host: 'localhost', port: 443 }), ['16']);
  });

  it('are none where a connection has the port, or the host is no address', () => {
    assert.deepEqual(tcpInodes(rows, { host: '127.0.0.1', port: 81 }), []);
    assert.deepEqual(tcpInodes(rows, { host: 'app.example.net', port: 9090 }), []);
    assert.deepEqual(tcpInodes(rows, { host: '300.0.0.1', port: 9090 }), []);
  });
});

describe('the listening unix sockets', () => {
  const table = [
    'Num       RefCount Protocol Flags    Type St Inode Path',
    '0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/app.sock',
    '0000000000000000: 00000003 00000000 00000000 0001 03 4712 /run/app.sock',
    '0000000000000000: 00000002 00000000 00010000 0001 01 4713 @abstract',
    '0000000000000000: 00000002 00000000 00010000 0001 01 4714',
    '0000000000000000: 00000002 00000000 00010000 0001 01 4715 /run/with space.sock',
  ].join('\n');

  it('are those that were bound to the path and take connections', () => {
    assert.deepEqual(
      unixInodes(table, (path) => path === '/run/app.sock'),
      ['4711'],
    );
    assert.deepEqual(
      unixInodes(table, (path) => path === '/run/with space.sock'),
      ['4715'],
    );
  });
});

describe('a place of this host', () => {
  it('is a unix socket or a loopback address', () => {
    assert.equal(isLocalPlace({ path: '/run/app.sock' }), true);
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
      assert.equal(isLocalPlace({ host, port: 1 }), true, host);
    for (const host of ['192.0.2.1', 'app.example.net', '127.example.net', '::2'])
      assert.equal(isLocalPlace({ host, port: 1 }), false, host);
  });
});
