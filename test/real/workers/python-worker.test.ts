// The protocol in another language: the sample worker in Python, with a real agent. The exit code,
// the status and the answers of the worker agree.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type WholeSystem, wholeSystem } from '../../kit/agent/whole-system.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { startPythonWorker } from '../../kit/workers/python-worker.js';

const options = { timeout: 240_000, ...needs('python3', 'python3') };

const config = {
  bundles: [{ name: 'limits' }],
  workers: [{ name: 'limits', uses: ['limits'], reset: { native: 'limits', timeout: '60s' } }],
};

function release(requestsPerMinute: number): Record<string, string> {
  return { 'limits.json': JSON.stringify({ requestsPerMinute }) };
}

/** @returns name, state and confirmed generation of the one worker, from the status */
async function standing(writ: WholeSystem): Promise<readonly unknown[]> {
  const { workers } = (await writ.status()) as { workers: Record<string, unknown>[] };
  assert.equal(workers.length, 1, JSON.stringify(workers));
  const [one = {}] = workers;
  return [one['worker'], one['state'], one['confirmed']];
}

describe('the sample worker in Python', { ...options, ...longCase }, () => {
  it('is as short as the protocol', () => {
    const lines = readFileSync('docs/examples/limits/worker.py', 'utf8').split('\n');
    assert.ok(lines.filter((line) => line.trim() !== '').length <= 30);
  });

  it('accepts a good policy, refuses a bad one, and reconnects to a restarted agent', async (t) => {
    using dir = tempDir();
    await using writ = await wholeSystem(dir, { config, pollEvery: '30d' });
    await using worker = startPythonWorker(`${writ.run}/workers/limits.sock`, 'python-1');

    await t.test('waits for an agent, and acknowledges the first policy', async () => {
      await until(() => worker.complaints().includes('No such file'));
      await writ.publish(release(60));
      await writ.startAgent();
      await until(() => worker.answers().length > 0);
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 0, JSON.stringify(pull));
      assert.equal(pull.json['confirmed'], true);
      assert.deepEqual(worker.answers(), ['generation 1: 60 requests per minute']);
      assert.deepEqual(await standing(writ), ['python-1', 'confirmed', 1]);
    });

    await t.test('refuses with its reason: the previous generation is restored, exit 5', async () => {
      const current = writ.current();
      await writ.publish(release(0));
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 5, JSON.stringify(pull));
      assert.deepEqual([pull.json['outcome'], pull.json['code']], ['rolled-back', 'WORKER_REFUSED']);
      assert.match(JSON.stringify(pull.json['problems']), /requestsPerMinute is 0, and not a number above 0/);
      assert.equal(writ.current(), current);
      assert.equal(worker.answers().at(-1), 'generation 1: 60 requests per minute');
      assert.deepEqual(await standing(writ), ['python-1', 'confirmed', 1]);
    });

    await t.test('is notified of the active generation when the agent is back, and answers', async () => {
      await writ.stopAgent();
      const before = worker.answers().length;
      await writ.startAgent();
      await until(() => worker.answers().length > before);
      assert.equal(worker.answers().at(-1), 'generation 1: 60 requests per minute');
      await until(async () => (await standing(writ))[1] === 'confirmed');
      await writ.publish(release(90));
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 0, JSON.stringify(pull));
      const [, , confirmed] = await standing(writ);
      assert.equal(worker.answers().at(-1), `generation ${confirmed}: 90 requests per minute`);
      assert.equal(writ.current(), `generations/${confirmed}`);
      assert.equal(worker.complaints().includes('Traceback'), false, worker.complaints());
    });
  });
});
