import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { tellIds } from '../../src/agent/cycle-story.js';
import type { Host } from '../../src/agent/host.js';
import { type SettleOptions, type SettleResult, settleDue } from '../../src/agent/settle-due.js';
import { openStagingArea } from '../../src/agent/staging-area.js';
import { dueWorkers, wantGeneration } from '../../src/agent/worker-ledger.js';
import type { WorkerGroupConfig } from '../../src/core/config.js';
import { directoryState } from '../support/directory-state.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../support/scripted-driver.js';
import { type TestHost, testHost } from '../support/test-host.js';

let cycles = 0;

async function settle(host: Host, more: Partial<SettleOptions> = {}): Promise<SettleResult> {
  cycles += 1;
  const cycle = `c-${cycles}`;
  const area = openStagingArea(host.paths, host.durable, cycle);
  const staging = (): string => area.path();
  const { signal } = new AbortController();
  try {
    return await settleDue(host, { staging, signal, nextTell: tellIds(cycle), who: 'all', ...more });
  } finally {
    area.remove(host.log);
  }
}

const entryOf = (test: TestHost, key: string) => test.host.ledger.read().workers[key];
const codes = ({ problems }: SettleResult): string[] => problems.map((one) => one.code);

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
}

/** Version 1 is active and everybody has confirmed it, but for the workers that say otherwise. */
async function world(
  workers: Parameters<typeof scriptedDriver>[0],
  config: Partial<WorkerGroupConfig> = {},
): Promise<World> {
  const driver = scriptedDriver(workers);
  for (const name of Object.keys(workers)) driver.processes.set(name, `first-${name}`);
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.told.length = 0;
  // Whoever is another process from now on was not made by that tell.
  await test.clock.advance(20_000);
  return { test, driver };
}

const probe = (script: string): Partial<WorkerGroupConfig> => ({
  probe: { run: ['sh', '-c', script], timeoutMs: 5000, retry: 0 },
});

describe('a worker that could not be told', () => {
  it('is told again, it alone, until it confirms', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
    using _ = test;
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    driver.workers.set('b', confirms);
    assert.deepEqual(codes(await settle(test.host)), []);
    assert.deepEqual(driver.told, ['b 1', 'b 1']);
    assert.deepEqual(
      [entryOf(test, 'app/a')?.state, entryOf(test, 'app/b')?.state],
      ['confirmed', 'confirmed'],
    );
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
  });

  it('waits for its own turn, and not for that of others', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
    using _ = test;
    await settle(test.host);
    driver.told.length = 0;
    const turn = (): Promise<SettleResult> => settle(test.host, { who: 'whose-turn-it-is' });
    assert.deepEqual(codes(await turn()), ['WORKER_UNREACHABLE'], 'said, though it is not told yet');
    assert.deepEqual(driver.told, []);
    test.clock.setWallTime(test.clock.nowMs() + 10_000);
    await turn();
    // The one that appears just now has its first turn at once.
    driver.workers.set('c', confirms);
    await turn();
    assert.deepEqual(driver.told, ['b 1', 'c 1']);
    const { tries, nextTellAtMs } = entryOf(test, 'app/b') ?? {};
    assert.deepEqual([tries, nextTellAtMs], [3, test.clock.nowMs() + 20_000]);
  });

  it('is due still after a restart of the agent, and told that once', async () => {
    const { test, driver } = await world({ a: confirms, b: unreachable });
    using _ = test;
    driver.workers.set('b', confirms);
    const restarted = test.reopen();
    await settle(restarted);
    await settle(restarted);
    assert.deepEqual(driver.told, ['b 1']);
  });

  it('is due no more when it refuses: that is an answer, and said to who can act on it', async () => {
    const { test, driver } = await world({ a: unreachable, b: unreachable });
    using _ = test;
    driver.workers.set('a', confirms).set('b', refuses('no view eu'));
    const refusals: string[] = [];
    const onRefused = async (error: { code: string }): Promise<void> => void refusals.push(error.code);
    const result = await settle(test.host, { onRefused });
    assert.deepEqual([codes(result), refusals], [['WORKER_REFUSED'], ['WORKER_REFUSED']]);
    assert.deepEqual(
      [entryOf(test, 'app/a')?.state, entryOf(test, 'app/b')?.state],
      ['confirmed', 'refused'],
    );
    assert.equal(dueWorkers(test.host.ledger.read()).size, 0);
  });

  it('is told under an id of its own each time', async () => {
    const { test, driver } = await world({ a: unreachable });
    using _ = test;
    const first = entryOf(test, 'app/a')?.tell;
    const second = (await settle(test.host)).results[0]?.tell;
    driver.workers.set('a', confirms);
    const third = (await settle(test.host)).results[0]?.tell;
    assert.equal(new Set([first, second, third]).size, 3);
    assert.equal(entryOf(test, 'app/a')?.tell, third);
  });
});

describe('a worker that appears', () => {
  it('is told what is active, though it was never seen', async () => {
    const { test, driver } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    await settle(test.host);
    assert.deepEqual([driver.told, entryOf(test, 'app/late')?.confirmed], [['late 1'], 1]);
  });

  it('as another process has confirmed nothing, and is told', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
    using _ = test;
    driver.processes.set('a', 'second-a');
    driver.workers.set('a', unreachable);
    await settle(test.host);
    assert.deepEqual([driver.told, entryOf(test, 'app/a')?.state], [['a 1'], 'unreachable']);
    driver.workers.set('a', confirms);
    await settle(test.host);
    await settle(test.host);
    assert.deepEqual(driver.told, ['a 1', 'a 1']);
  });

  it('as another process right behind its answer is what the tell has made of it, and not told for ever', async () => {
    const { test, driver } = await world({ a: confirms });
    using _ = test;
    let processes = 1;
    driver.workers.set('a', (generation) => {
      processes += 1;
      driver.processes.set('a', `process-${processes}`);
      return confirms(generation);
    });
    driver.processes.set('a', 'restarted by somebody');
    for (let look = 0; look < 4; look++) {
      await settle(test.host);
      await test.clock.advance(5000);
    }
    assert.deepEqual(driver.told, ['a 1']);
  });

  it('as another process right behind its answer is told where no tell makes one: that one has answered nothing', async () => {
    const { test, driver } = await world({ a: confirms });
    using _ = test;
    Object.assign(driver, { keepsProcess: 'yes' });
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.pull();
    driver.processes.set('a', 'second-a');
    driver.workers.set('a', unreachable);
    driver.told.length = 0;
    assert.deepEqual(codes(await settle(test.host)), ['WORKER_UNREACHABLE']);
    assert.deepEqual([driver.told, entryOf(test, 'app/a')?.state], [['a 2'], 'unreachable']);
  });

  it('that was gone is told when it is back, unless it is the very process that confirmed', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms, c: confirms });
    using _ = test;
    driver.processes.delete('c');
    await settle(test.host);
    driver.told.length = 0;
    for (const name of ['a', 'b', 'c']) driver.workers.delete(name);
    await settle(test.host);
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, test.clock.nowMs());
    for (const name of ['a', 'b', 'c']) driver.workers.set(name, confirms);
    driver.processes.set('b', 'second-b');
    await settle(test.host);
    assert.deepEqual(driver.told, ['b 1', 'c 1'], 'nobody can say of c that it is the same');
    assert.equal(entryOf(test, 'app/a')?.goneAtMs, undefined);
  });

  it('and is gone for long is forgotten', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
    using _ = test;
    driver.workers.delete('b');
    await settle(test.host);
    test.clock.setWallTime(test.clock.nowMs() + 600_001);
    await settle(test.host);
    assert.deepEqual(Object.keys(test.host.ledger.read().workers), ['app/a']);
  });

  it('is told nothing while nothing is active', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    assert.deepEqual(await settle(test.host), { results: [], problems: [] });
    assert.deepEqual([driver.told, driver.reads], [[], 0]);
  });
});

describe('a group with a probe', () => {
  it('whose probe shows the generation already is told nothing after a restart that lost the answers', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms }, probe('true'));
    using _ = test;
    const { host } = test;
    host.ledger.write({ ...host.ledger.read(), workers: {} });
    const { results } = await settle(test.reopen());
    assert.deepEqual(driver.told, []);
    assert.deepEqual(
      results.map((one) => [one.worker, one.state, one.tell]),
      [
        ['a', 'confirmed', undefined],
        ['b', 'confirmed', undefined],
      ],
    );
  });

  it('whose probe says no is told', async () => {
    const { test, driver } = await world({ a: confirms }, probe('test ! -e /nowhere || exit 1'));
    using _ = test;
    const { host } = test;
    host.ledger.write({ ...host.ledger.read(), workers: {} });
    const [group] = test.reopen().groups;
    const groups = [{ ...group!, config: { ...group!.config, ...probe('exit 1') } }];
    const result = await settle({ ...test.reopen(), groups });
    assert.deepEqual([driver.told, codes(result)], [['a 1'], ['PROBE_FAILED']]);
  });

  it('is told all the same what a move did not come to tell it: the way back may be half done', async () => {
    const { test, driver } = await world({ a: confirms }, probe('true'));
    using _ = test;
    const { host } = test;
    host.ledger.write(wantGeneration(host.ledger.read(), host.groups, 2, 1));
    host.ledger.write(wantGeneration(host.ledger.read(), host.groups, 1, 2));
    await settle(host);
    assert.deepEqual(driver.told, ['a 1']);
  });

  it('is asked first for who gave no answer in time: it may have obeyed', async () => {
    const { test, driver } = await world({ a: unreachable }, probe('true'));
    using _ = test;
    const restarted = test.reopen();
    await settle(restarted);
    assert.deepEqual([driver.told, restarted.ledger.read().workers['app/a']?.state], [[], 'confirmed']);
  });

  it('is not believed for one worker while another one could have answered', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms }, probe('true'));
    using _ = test;
    driver.processes.set('b', 'second-b');
    driver.workers.set('b', unreachable);
    await settle(test.host);
    assert.deepEqual([driver.told, entryOf(test, 'app/b')?.state], [['b 1'], 'unreachable']);
  });

  it('that refuses what a due worker was told is a refusal, and the worker stays due', async () => {
    const { test, driver } = await world({ a: unreachable, b: confirms }, probe('true'));
    using _ = test;
    driver.workers.set('a', () => ({ kind: 'told', text: 'signalled' }));
    const groups = test.host.groups.map((one) => ({ ...one, config: { ...one.config, ...probe('exit 3') } }));
    const refusals: string[] = [];
    await settle({ ...test.host, groups }, { onRefused: async (error) => void refusals.push(error.code) });
    assert.deepEqual([refusals, entryOf(test, 'app/a')?.state], [['PROBE_FAILED'], 'unreachable']);
  });
});

describe('a restart of the agent', () => {
  it('tells nobody who has confirmed, and writes nothing', async () => {
    const { test, driver } = await world({ a: confirms, b: confirms });
    using _ = test;
    const restarted = test.reopen();
    await settle(restarted);
    const before = directoryState(test.host.paths.state);
    await settle(restarted);
    assert.deepEqual(directoryState(test.host.paths.state), before);
    assert.deepEqual(driver.told, []);
  });
});

describe('a set that cannot be read', () => {
  it('makes its workers neither gone nor confirmed, and is said until it can', async () => {
    const { test, driver } = await world({ a: confirms });
    using _ = test;
    driver.unread = '/run/app cannot be listed: EACCES';
    const result = await settle(test.host);
    assert.deepEqual([codes(result), result.problems[0]?.facts['group']], [['WORKER_UNREACHABLE'], 'app']);
    assert.deepEqual([entryOf(test, 'app/a')?.goneAtMs, entryOf(test, 'app/a')?.confirmed], [undefined, 1]);
    const since = test.host.ledger.read().unreadSets?.['app']?.sinceMs;
    test.clock.setWallTime(test.clock.nowMs() + 60_000);
    await settle(test.host);
    assert.equal(test.host.ledger.read().unreadSets?.['app']?.sinceMs, since);
    driver.unread = undefined;
    assert.deepEqual(codes(await settle(test.host)), []);
    assert.equal(test.host.ledger.read().unreadSets, undefined);
    assert.deepEqual(driver.told, []);
  });

  it('leaves an activation degraded, and its workers due', async () => {
    const { test, driver } = await world({ a: confirms });
    using _ = test;
    driver.unread = '/run/app cannot be listed: EACCES';
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.generation, result.confirmed], [4, 2, false]);
    assert.equal(entryOf(test, 'app/a')?.state, 'waiting');
    driver.unread = undefined;
    await settle(test.host);
    assert.deepEqual([driver.told, entryOf(test, 'app/a')?.confirmed], [['a 2'], 2]);
  });
});

describe('a cycle with nothing new', () => {
  it('reads the sets anew and tells who has appeared', async () => {
    const { test, driver } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, driver.told, result.workers[0]?.state],
      ['unchanged', ['late 1'], 'confirmed'],
    );
    assert.match(result.workers[0]?.tell ?? '', new RegExp(`^${result.cycle}\\.1$`));
  });

  it('is degraded while a worker is due, or fewer are there than must be', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    const { test, driver } = await world({ a: confirms, b: unreachable }, { reset });
    using _ = test;
    const due = await test.pull();
    assert.deepEqual([due.exitCode, due.problems.map((one) => one.code)], [4, ['WORKER_UNREACHABLE']]);
    driver.workers.delete('b');
    const few = await test.pull();
    assert.deepEqual([few.exitCode, few.problems.map((one) => one.code)], [4, ['WORKERS_MISSING']]);
    assert.deepEqual([few.problems[0]?.facts['expected'], few.problems[0]?.facts['actual']], [2, 1]);
  });
});
