// A storm of signals and requests on a real agent, as from a script in a loop or a faulty service manager. Every request gets
// its response in time, the worker keeps its connection, and the agent is unchanged after the storm.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { sampleSize } from '../../kit/assert/sample.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { joinAs } from '../../kit/workers/raw-worker.js';

/** Far above what one request takes, far below what a queue of a thousand reloads would. */
const deadlineMs = 20_000;

const requests: readonly (readonly string[])[] = [
  ['pull'],
  ['status'],
  ['rollback', '--reason', 'storm'],
  ['resume'],
  ['pause', '--reason', 'storm'],
  ['resume'],
  ['pull', '--force'],
  ['reload'],
  ['health'],
];

describe('a storm of reloads and requests', () => {
  it('delays no request, ends no connection of a worker, and leaks nothing', async (test) => {
    using dir = tempDir();
    const site = writSite(dir, {
      workers: [{ name: 'app', uses: ['dns-edge'], reset: { native: 'app', min: 0 } }],
    });
    for (const version of [1, 2]) {
      await site.repository.publish({ 'block.rpz': `version ${version}\n` });
      await site.writ('pull');
    }
    await using agent = await site.agent();
    const worker = await joinAs(join(site.run, 'workers/app.sock'), 'web');
    const answering = answerAll(worker);
    const hangups = sampleSize() ?? 1000;
    const asked = { ended: false };
    const storm = hangUp(agent.child.pid ?? 0, hangups).finally(() => {
      asked.ended = true;
    });
    const times: number[] = [];
    for (let turn = 0; !asked.ended || turn < requests.length; turn++) {
      const request = requests[turn % requests.length] ?? ['status'];
      times.push(await timeOf(site, request));
    }
    await storm;
    const slowest = Math.max(...times);
    test.diagnostic(`${hangups} hang-ups, ${times.length} requests, the slowest ${Math.round(slowest)} ms`);
    assert.ok(slowest < deadlineMs, `${slowest} ms`);
    assert.equal(agent.child.exitCode, null);
    await site.writ('resume');
    // The storm may have ended in a rollback: then the newest release comes back first.
    await site.writ('pull');
    const pull = await site.json('pull');
    assert.deepEqual([pull['outcome'], pull['confirmed']], ['unchanged', true]);
    assert.deepEqual(fs.readdirSync(join(site.state, 'staging')), []);
    const { connections } = answering();
    assert.equal(connections, 1, 'the group did not change, so that its connection never ended');
    agent.child.kill('SIGTERM');
    await until(() => agent.child.exitCode !== null);
    assert.equal(agent.child.exitCode, 0);
  });
});

async function hangUp(pid: number, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    process.kill(pid, 'SIGHUP');
    await sleep(20);
  }
}

async function timeOf(site: WritSite, request: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  const { exitCode, stderr } = await site.writ(...request);
  // 5, 6 and 8: there may be nothing to go back to, or a pause.
  assert.ok([0, 1, 4, 6, 8].includes(exitCode ?? -1), `${request.join(' ')}: ${exitCode} ${stderr}`);
  return performance.now() - startedMs;
}

/** @returns the number of connections so far: one, unless the agent closes it */
function answerAll(worker: Awaited<ReturnType<typeof joinAs>>): () => { readonly connections: number } {
  let connections = 1;
  const answer = async (): Promise<void> => {
    for (;;) {
      const { id, generation } = JSON.parse(await worker.line()) as { id: number; generation: number };
      if (id !== undefined) worker.send({ type: 'ack', id, generation });
    }
  };
  answer().catch(() => {
    connections = 0;
  });
  return () => ({ connections });
}
