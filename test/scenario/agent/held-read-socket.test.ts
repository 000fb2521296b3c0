// A client of the group that keeps its connection open after its answer must not block other clients.
import assert from 'node:assert/strict';
import { createConnection, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { encodeLine, helloLine } from '../../../src/core/protocol/socket-protocol.js';
import { siteWithRelease } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

interface Asked {
  readonly text: string;
  readonly socket: Socket;
}

/** Requests the status, and keeps its half of the connection open after the answer. */
function askAndStay(path: string): Promise<Asked> {
  return new Promise((resolve) => {
    const socket = createConnection({ path, allowHalfOpen: true });
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    const done = (): void => resolve({ text, socket });
    socket.once('end', done).once('close', done);
    socket.write(helloLine('0.1.0') + encodeLine({ type: 'status' }));
  });
}

describe('the read socket of an agent', longCase, () => {
  it('frees the connections of answered clients that do not close them', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, {
      read: { group: process.getgid?.() ?? 0 },
      poll: { every: '1h' },
    });
    await using agent = site.start();
    await agent.hasEnded(1);
    const { readSocket } = site.paths;
    const held = await Promise.all(Array.from({ length: 16 }, () => askAndStay(readSocket)));
    try {
      for (const { text } of held) assert.match(text, /status\.result/);
      await until(async () => {
        const { text, socket } = await askAndStay(readSocket);
        socket.destroy();
        return text.includes('status.result');
      });
    } finally {
      for (const { socket } of held) socket.destroy();
    }
  });
});
