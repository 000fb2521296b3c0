// The server of a running agent fails for longer than `maxStale`, and recovers.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseControlRequest } from '../../../src/core/protocol/control-protocol.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const minuteMs = 60_000;

describe('an agent with an unreachable server', longCase, () => {
  it('runs the operator’s command onStale after maxStale, and onFresh when the server answers again', async () => {
    using dir = tempDir();
    const out = dir.join('out');
    const appendCommand = (text: string) => ({
      run: ['sh', '-c', `echo ${text} $WRIT_STALE_CODE >> ${out}`],
    });
    const site = agentSite(dir, {
      poll: { every: '1m' },
      maxStale: '10m',
      onStale: appendCommand('stop'),
      onFresh: appendCommand('start'),
    });
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using agent = site.start();
    await agent.hasEnded(1);
    renameSync(dir.join('repo'), dir.join('away'));

    for (let minutes = 0; minutes < 3; minutes += 1) await site.clock.advance(minuteMs);
    await agent.hasEnded(2);
    assert.deepEqual([(await agent.status()).freshness.state, existsSync(out)], ['fresh', false]);
    for (let minutes = 0; minutes < 10; minutes += 1) await site.clock.advance(minuteMs);
    await until(() => existsSync(out));
    const { freshness, problems, generation } = await agent.status();
    assert.deepEqual(
      [freshness.state, freshness.failing?.code, generation],
      ['stale', 'SERVER_UNREACHABLE', 1],
    );
    assert.ok(problems.some((one) => one.code === 'POLICY_STALE'));

    renameSync(dir.join('away'), dir.join('repo'));
    await agent.pull();
    await until(() => readFileSync(out, 'utf8') === 'stop SERVER_UNREACHABLE\nstart\n');
    assert.deepEqual(
      [(await agent.status()).freshness.state, (await agent.status()).problems],
      ['fresh', []],
    );
  });
});

describe('a rollback over the control socket', () => {
  it('is forced only when the request has force: true', () => {
    const request = { type: 'rollback', by: 'anna' } as const;
    assert.deepEqual(parseControlRequest({ ...request, force: true }), { ...request, force: true });
    for (const force of [false, 'yes', 1])
      assert.deepEqual(parseControlRequest({ ...request, force }), request);
  });
});
