// Which connection a new one displaces, and which ones a pace check closes. The sockets only count bytes.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { createConnections } from '../../../../src/platform/serve/connections.js';
import { type ServerLimits, serverLimits } from '../../../../src/platform/serve/server-limits.js';

class CountingSocket extends EventEmitter {
  readonly remoteAddress = '127.0.0.1';
  localAddress: string | undefined = '127.0.0.1';
  readonly localPort = 8080;
  readonly remotePort: number;
  bytesRead = 0;
  bytesWritten = 0;
  writableLength = 0;
  gone: 'destroyed' | 'reset' | undefined;
  constructor(port: number) {
    super();
    this.remotePort = port;
  }
  destroy(): void {
    this.gone = 'destroyed';
    this.localAddress = undefined;
    this.emit('close');
  }
  resetAndDestroy(): void {
    this.gone = 'reset';
    this.localAddress = undefined;
    this.emit('close');
  }
}

function table(limits: Partial<ServerLimits>) {
  const ended: (readonly [number, string])[] = [];
  const connections = createConnections({
    limits: serverLimits(limits, 10_000),
    onEnded: (socket, why) => ended.push([socket.remotePort ?? 0, why]),
  });
  const as = (socket: CountingSocket): Socket => socket as unknown as Socket;
  let port = 0;
  return {
    ended,
    connections,
    /** @returns undefined for a refused connection */
    take: (): CountingSocket | undefined => {
      port += 1;
      const socket = new CountingSocket(port);
      return connections.take(as(socket)) ? socket : undefined;
    },
    begin: (socket: CountingSocket | undefined): void => {
      assert.ok(socket);
      socket.bytesRead += 50;
      connections.answerBegun(as(socket));
    },
    end: (socket: CountingSocket | undefined): void => {
      assert.ok(socket);
      socket.bytesWritten += 500;
      connections.answerEnded(as(socket));
    },
  };
}

describe('a new connection at the maximum', () => {
  it('displaces the connection that has been idle longest after its response', () => {
    const here = table({ maxConnections: 4 });
    const [asking, first, second] = [here.take(), here.take(), here.take()];
    for (const one of [second, first]) {
      here.begin(one);
      here.end(one);
    }
    here.begin(here.take());
    assert.ok(here.take());
    assert.ok(here.take());
    assert.deepEqual(here.ended, [
      [3, 'displaced'],
      [2, 'displaced'],
    ]);
    assert.equal(asking?.gone, undefined);
  });

  it('displaces the longest incomplete request if no connection is idle', () => {
    const here = table({ maxConnections: 3 });
    here.begin(here.take());
    here.take();
    here.take();
    assert.ok(here.take());
    assert.deepEqual(here.ended, [[2, 'displaced']]);
  });

  it('counts a connection with a begun next request as one with an incomplete request', () => {
    const here = table({ maxConnections: 2 });
    const [first, second] = [here.take(), here.take()];
    for (const one of [first, second]) {
      here.begin(one);
      here.end(one);
    }
    assert.ok(first);
    first.bytesRead += 1;
    here.take();
    assert.deepEqual(here.ended, [[2, 'displaced']]);
  });

  it('is refused while each connection has an active response, and accepted after a complete one', () => {
    const here = table({ maxConnections: 2 });
    const [first, second] = [here.take(), here.take()];
    here.begin(first);
    here.begin(second);
    assert.equal(here.take(), undefined);
    assert.deepEqual(here.ended, []);
    here.end(first);
    assert.ok(here.take());
    assert.deepEqual(here.ended, [[1, 'displaced']]);
  });

  it('does not displace a connection with an active next response', () => {
    const here = table({ maxConnections: 1 });
    const only = here.take();
    here.begin(only);
    here.begin(only);
    here.end(only);
    assert.equal(here.take(), undefined);
  });

  it('does not displace a closed connection that ends its response later', () => {
    const here = table({ maxConnections: 1 });
    const gone = here.take();
    here.begin(gone);
    gone?.destroy();
    here.end(gone);
    here.begin(here.take());
    assert.equal(here.take(), undefined);
    assert.deepEqual(here.ended, []);
  });

  it('displaces a connection that has read nothing of its response for ten seconds', () => {
    const here = table({ maxConnections: 2 });
    const [first, second] = [here.take(), here.take()];
    here.begin(first);
    here.begin(second);
    here.connections.checkPace(9999);
    assert.equal(here.take(), undefined);
    here.connections.checkPace(1);
    assert.ok(first);
    first.bytesWritten += 1;
    assert.ok(here.take());
    assert.deepEqual(here.ended, [[2, 'displaced']]);
  });
});

describe('the pace check of all connections', () => {
  it('resets a client that reads nothing of its response for one idle timeout, and reports it', () => {
    const here = table({});
    const stuck = here.take();
    here.begin(stuck);
    assert.ok(stuck);
    // The response is written and not read. Further bytes of the client do not show that it reads.
    stuck.bytesWritten = stuck.writableLength = 65_536;
    here.connections.checkPace(59_999);
    stuck.bytesRead += 10;
    assert.equal(stuck.gone, undefined);
    here.connections.checkPace(1);
    assert.equal(stuck.gone, 'reset');
    assert.deepEqual(here.ended, [[1, 'slow']]);
  });

  it('resets a client that reads too slowly', () => {
    const here = table({});
    const slow = here.take();
    here.begin(slow);
    assert.ok(slow);
    for (let seconds = 0; seconds < 300; seconds += 50) {
      assert.equal(slow.gone, undefined);
      slow.bytesWritten += 50_000;
      here.connections.checkPace(50_000);
    }
    assert.equal(slow.gone, 'reset');
  });

  it('requires no throughput of an idle connection, and allows it the time between two requests', () => {
    const here = table({});
    const [silent, polling] = [here.take(), here.take()];
    here.begin(polling);
    here.end(polling);
    here.connections.checkPace(60_000);
    assert.equal(silent?.gone, 'reset');
    assert.equal(polling?.gone, undefined);
    for (let polls = 0; polls < 10; polls += 1) {
      here.begin(polling);
      here.end(polling);
      here.connections.checkPace(60_000);
    }
    assert.equal(polling?.gone, undefined);
    assert.deepEqual(here.ended, []);
    here.connections.checkPace(5000);
    assert.equal(polling?.gone, 'reset');
  });

  it('ignores a new connection from the port of a closed one', () => {
    const here = table({ maxConnections: 1 });
    const first = here.take();
    const again = new CountingSocket(1);
    assert.ok(first);
    first.destroy();
    assert.equal(here.connections.take(again as unknown as Socket), true);
    first.emit('close');
    here.connections.checkPace(60_000);
    assert.equal(again.gone, 'reset');
  });
});
