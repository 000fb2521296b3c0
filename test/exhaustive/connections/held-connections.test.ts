// `writ serve` with its maximum number of connections, each with a poll, and under many polls: its memory, and that a new
// client is served. Limits far above the measured values (docs/performance.md), to detect requests that stay in memory.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { residentBytesOf } from '../../../bench/measure/process-cost.js';
import { pollAll } from '../../../bench/web/poll-load.js';
import { startWritServer, type WritServer } from '../../../bench/web/writ-server.js';
import { readMaxOpenFiles } from '../../../src/platform/process/process-limits.js';
import { defaultServerLimits, serverLimits } from '../../../src/platform/serve/server-limits.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { rawGet } from '../../kit/net/raw-request.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

const megabyte = 1_000_000;
/** Leaves some connections free, because a full server closes an idle connection for a new client. */
const count = serverLimits(defaultServerLimits, readMaxOpenFiles()).maxConnections - 20;

describe(`a server with ${count} connections`, () => {
  let dir: TempDir;
  let server: WritServer;
  const resident = (): number => residentBytesOf(server.pid);
  const descriptors = (): number => readdirSync(`/proc/${server.pid}/fd`).length;
  const poll = <T>(hosts: number, polls: number, whileHeld: (ask: () => Promise<void>) => Promise<T>) =>
    pollAll({ url: new URL(`${server.url}/metadata/timestamp.json`), hosts, polls }, whileHeld);

  before(async () => {
    dir = tempDir();
    mkdirSync(dir.join('repo'));
    writeRepository(dir.join('repo'));
    const logFile = dir.join('log');
    server = await startWritServer(dir.join('repo'), ['--per-address', 'off'], { logFile });
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    dir[Symbol.dispose]();
  });

  it('holds them all, serves new clients, and uses no more memory when they reconnect', async (t) => {
    const start = { descriptors: descriptors(), bytes: resident() };
    const sizes: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      await poll(count, count, async (ask) => {
        // A client with a closed connection fails here.
        for (let polls = 0; polls < 3; polls += 1) await ask();
        assert.ok(descriptors() >= count);
        assert.equal((await rawGet(server.url, '/metadata/timestamp.json')).status, 200);
        sizes.push(resident());
      });
      await until(() => descriptors() <= start.descriptors + 1);
    }
    const [first = 0, again = 0] = sizes;
    t.diagnostic(`${start.bytes} bytes without, ${sizes.join(', ')} with ${count}`);
    assert.ok(first - start.bytes < 25_000 * count + 60 * megabyte, `${first - start.bytes} bytes`);
    assert.ok(again < first + 100 * megabyte, sizes.join(', '));
  });

  it('uses the same memory after a hundred thousand polls as after fifty thousand', async (t) => {
    const sizes = await poll(16, 50_000, async (ask) => {
      const after: number[] = [];
      for (let round = 0; round < 2; round += 1) {
        await ask();
        after.push(resident());
      }
      return after;
    });
    t.diagnostic(sizes.join(', '));
    const [half = 0, whole = 0] = sizes;
    assert.ok(whole < half + 25 * megabyte, sizes.join(', '));
  });
});
