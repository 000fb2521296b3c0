import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { clientOf, createAdmission, uncountedAddresses } from '../../../../src/platform/serve/admission.js';

/** The members of a socket that admission reads. */
function socketOf(remoteAddress: string): Socket {
  const remoteFamily = remoteAddress.includes(':') ? 'IPv6' : 'IPv4';
  return Object.assign(new EventEmitter(), { remoteAddress, remoteFamily }) as unknown as Socket;
}

describe('the number of connections of an address', () => {
  it('is bounded, and a closed connection allows another one', () => {
    const admission = createAdmission(2, uncountedAddresses([]));
    const [first, second, third] = ['192.0.2.1', '192.0.2.1', '192.0.2.1'].map(socketOf) as [
      Socket,
      Socket,
      Socket,
    ];
    assert.deepEqual([first, second, third].map(admission.admits), [true, true, false]);
    assert.ok(admission.admits(socketOf('192.0.2.2')));
    // A refused connection was never counted.
    third.emit('close');
    assert.equal(admission.admits(socketOf('192.0.2.1')), false);
    first.emit('close');
    assert.deepEqual(['192.0.2.1', '192.0.2.1'].map(socketOf).map(admission.admits), [true, false]);
  });

  it('is counted together for all addresses of an IPv6 network that one client may have', () => {
    const admission = createAdmission(1, uncountedAddresses([]));
    assert.ok(admission.admits(socketOf('2001:db8:0:1::1')));
    assert.equal(admission.admits(socketOf('2001:db8:0:1:ffff::2')), false);
    assert.ok(admission.admits(socketOf('2001:db8:0:2::1')));
  });

  it('is not bounded on loopback, nor for a configured proxy, in either notation', () => {
    const admission = createAdmission(1, uncountedAddresses(['192.0.2.7', '2001:db8::7']));
    for (const address of [
      ...['127.0.0.1', '127.3.2.1', '::1', '::ffff:127.0.0.1'],
      ...['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::7'],
    ]) {
      for (let count = 0; count < 5; count += 1) assert.ok(admission.admits(socketOf(address)), address);
    }
    assert.deepEqual(['2001:db8::8', '2001:db8::9'].map(socketOf).map(admission.admits), [true, false]);
  });
});

describe('the client behind an address', () => {
  const cases = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
    '2001:db8::1': '2001:db8:0:0',
    '::2': '0:0:0:0',
    'fe80::1%eth0': 'fe80:0:0:0',
    '1:2:3:4:5:6:7::': '1:2:3:4',
    '': '',
  };
  for (const [address, client] of Object.entries(cases)) {
    it(`of ${JSON.stringify(address)} is ${JSON.stringify(client)}`, () => {
      assert.equal(clientOf(address), client);
    });
  }
});
