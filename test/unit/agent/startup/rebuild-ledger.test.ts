import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { handlePause, handleResume } from '../../../../src/agent/control/operator-requests.js';
import { rollBack } from '../../../../src/agent/cycle/rollback.js';
import { scrub } from '../../../../src/agent/integrity/scrub.js';
import { exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { newCycleId } from '../../../../src/agent/job/progress.js';
import { createRecorder } from '../../../../src/agent/job/record.js';
import { startHost } from '../../../../src/agent/startup/start-host.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { unboundedPace } from '../../../../src/platform/time/rate-limit.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const signal = new AbortController().signal;
const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });
const start = (host: Host): ReturnType<typeof startHost> => startHost(host, { cycle: newCycleId(), signal });

/** A host with generations 1 and 2 of one bundle, and a worker that confirmed both. */
async function hostWithPolicy(): Promise<{ test: TestHost; driver: ScriptedDriver }> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  for (const serial of [1, 2]) {
    await test.publish('access', policy(serial), { serial });
    await test.pull();
  }
  driver.notified.length = 0;
  return { test, driver };
}

async function rollBackOnce(test: TestHost, by: string): Promise<void> {
  const end = await rollBack(test.host, { by, reason: 'it is bad', signal, onEvent: () => undefined });
  createRecorder().record(test.host, end, { by, reason: 'it is bad' });
  assert.equal(end.result.outcome, 'activated');
}

const spoilt: readonly [string, (path: string) => void][] = [
  ['damaged', (path) => fs.writeFileSync(path, '{"writ":1,"nextGen')],
  ['lost', (path) => fs.rmSync(path)],
  ['of another form', (path) => fs.writeFileSync(path, '{"writ":1,"nextGeneration":"2"}')],
];

describe('a ledger that is', () => {
  for (const [how, spoil] of spoilt) {
    it(`${how} is rebuilt with greater numbers than all that were used`, async () => {
      const { test } = await hostWithPolicy();
      using _ = test;
      const before = test.host.ledger.read();
      spoil(test.host.paths.ledger);
      const host = test.reopen();
      const { damage, notices } = await start(host);
      assert.deepEqual([damage, notices.map((one) => one.code)], [undefined, ['STATE_REBUILT']]);
      const after = test.reopen().ledger.read();
      assert.ok(after.nextGeneration > before.nextGeneration);
      assert.ok(after.lastMtimeSeconds >= before.lastMtimeSeconds);
      assert.deepEqual(after.accepted, before.accepted);
      assert.deepEqual(after.channels, before.channels);
      assert.equal(after.lastKnownGood, 2);
      assert.equal((await cycleOn(host)).outcome, 'unchanged');
    });
  }

  it('damaged is set aside, and reported once in the history', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(test.host.paths.ledger, '{');
    await start(test.reopen());
    const { notices } = await start(test.reopen());
    assert.deepEqual(notices, []);
    assert.equal(fs.readFileSync(`${test.host.paths.ledger}.damaged`, 'utf8'), '{');
    const [row, ...others] = readHistory(test.host.paths, { limit: 100 }).filter(
      ({ result }) => result.warnings.length > 0,
    );
    assert.deepEqual(others, []);
    assert.deepEqual([row?.result.outcome, row?.result.exitCode], ['unchanged', 0], 'as the pull reports');
    assert.deepEqual(
      row?.result.warnings.map((one) => [one.code, one.facts['kept']]),
      [['STATE_REBUILT', `${test.host.paths.ledger}.damaged`]],
    );
  });

  it('lost adds no cycle to the history that did not run', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(test.host.paths.ledger);
    fs.writeFileSync(test.host.paths.journal, '{');
    const { recovered } = await start(test.reopen());
    assert.deepEqual([recovered?.recovers, recovered?.result.outcome], [undefined, 'activated']);
  });

  it('intact beside a damaged journal commits a cycle that the history contains', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    setLedger(test.host.ledger, { lastKnownGood: 1, committedCycle: 'c-1' });
    fs.writeFileSync(test.host.paths.journal, '{');
    const host = test.reopen();
    const { recovered } = await start(host);
    assert.equal(recovered?.result.outcome, 'activated');
    assert.equal(host.ledger.read().committedCycle, recovered?.result.cycle);
    assert.equal(recovered?.recovers, undefined);
  });

  it('lost reuses no number of a tree, a link, the history or a worker', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    const { paths } = test.host;
    fs.mkdirSync(join(paths.bundles, 'access', `9-${'a'.repeat(12)}.70`));
    fs.mkdirSync(join(paths.generations, '60'));
    const entry = {
      type: 'history.entry',
      result: { cycle: 'c-1', generation: 80, workers: [{ generation: 90 }] },
    };
    fs.appendFileSync(paths.history, `${JSON.stringify(entry)}\n{"half`);
    fs.rmSync(paths.ledger);
    const host = test.reopen();
    await start(host);
    assert.ok(host.ledger.read().nextGeneration > 90);
  });

  it('lost is not created by the record of a scan, so no number is used twice', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(test.host.paths.ledger);
    const host = test.reopen();
    const scanned = await scrub(() => host, {
      ...{ cycle: newCycleId(), signal: new AbortController().signal, contents: 'digests' as const },
      ...{ repair: 'no' as const, download: 'no' as const, exclusive: exclusiveAlone, pace: unboundedPace() },
    });
    assert.deepEqual([scanned.outcome, fs.existsSync(host.paths.ledger)], ['intact', false]);
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    const again = test.reopen();
    await start(again);
    assert.ok(((await cycleOn(again)).generation ?? 0) > 1000);
  });

  it('lost causes a new notification of each worker, because the earlier ones are unknown', async () => {
    const { test, driver } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(test.host.paths.ledger);
    const host = test.reopen();
    const { recovered } = await start(host);
    assert.deepEqual(driver.notified, ['a 2']);
    const { outcome, generation, changed } = recovered!.result;
    assert.deepEqual([outcome, generation, changed], ['activated', 2, false]);
    assert.equal(host.ledger.read().workers['app/a']?.confirmed, 2);
    assert.equal(host.ledger.read().crashes, undefined);
  });

  it('lost is rebuilt with a release of the trust store that has no retained copy', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    const { accepted } = test.host.ledger.read();
    fs.rmSync(test.host.paths.ledger);
    fs.rmSync(test.host.paths.archives, { recursive: true });
    fs.mkdirSync(test.host.paths.archives);
    const host = test.reopen();
    await start(host);
    assert.deepEqual(host.ledger.read().accepted['access/stable']?.at(-1), accepted['access/stable']?.at(-1));
  });

  it('lost still rejects a release that is older than the accepted one', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(test.host.paths.ledger);
    const host = test.reopen();
    await start(host);
    await test.publish('access', policy(1), { serial: 1 });
    const result = await cycleOn(host);
    assert.deepEqual([result.outcome, result.problems[0]?.code], ['rejected', 'SERIAL_ROLLBACK']);
  });

  it('lost gives a new tree a later modification time than each earlier tree', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    const { paths } = test.host;
    const [tree] = fs.readdirSync(join(paths.bundles, 'access'));
    const far = Math.floor(test.clock.nowMs() / 1000) + 5000;
    fs.utimesSync(join(paths.bundles, 'access', tree!, 'policy.yaml'), far, far);
    fs.rmSync(paths.ledger);
    const host = test.reopen();
    await start(host);
    await test.publish('access', policy(3), { serial: 3 });
    assert.equal((await cycleOn(host)).outcome, 'activated');
    assert.ok(fs.statSync(join(paths.current, 'access/policy.yaml')).mtimeMs / 1000 > far);
  });

  it('lost still holds a release that an operator rolled back, as recorded in the history', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    await rollBackOnce(test, 'anna');
    fs.rmSync(test.host.paths.ledger);
    const host = test.reopen();
    await start(host);
    const [hold] = host.ledger.read().holds;
    assert.deepEqual(
      [hold?.bundle, hold?.serial, hold?.by, hold?.reason],
      ['access', 2, 'anna', 'it is bad'],
    );
    const result = await cycleOn(host);
    assert.deepEqual([result.outcome, result.problems[0]?.code], ['deferred', 'RELEASE_HELD']);
  });

  it('lost holds no release that became active again after its rollback', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    await rollBackOnce(test, 'anna');
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    fs.rmSync(test.host.paths.ledger);
    const host = test.reopen();
    await start(host);
    assert.deepEqual(host.ledger.read().holds, []);
  });

  const ends = { 'with an end': 3_600_000, 'without an end': undefined };
  for (const [how, forMs] of Object.entries(ends)) {
    it(`lost keeps a pause ${how}, as recorded in the history, and activates no release`, async () => {
      const { test } = await hostWithPolicy();
      using _ = test;
      const untilMs = forMs === undefined ? {} : { untilMs: test.host.clock.nowMs() + forMs };
      handlePause(test.host, { by: 'anna', reason: 'audit: week 47', ...untilMs });
      const { pause } = test.host.ledger.read();
      await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
      fs.rmSync(test.host.paths.ledger);
      const host = test.reopen();
      await start(host);
      assert.deepEqual(host.ledger.read().pause, pause);
      assert.equal((await cycleOn(host)).outcome, 'deferred');
      handleResume(host, 'anna');
      fs.rmSync(test.host.paths.ledger);
      const resumed = test.reopen();
      await start(resumed);
      assert.equal(resumed.ledger.read().pause, undefined);
    });
  }

  const hostile: Readonly<Record<string, unknown>> = {
    'of an older version, which has a pause only in its text': undefined,
    'without a reason': { by: 'anna', atMs: 1 },
    'with a time of another type': { by: 'anna', reason: 'audit', atMs: '1' },
    'with a text in place of a pause': 'paused',
    'with a list in place of a pause': [1],
  };
  for (const [how, pause] of Object.entries(hostile)) {
    it(`lost after a history line ${how} is rebuilt without a pause, and is readable`, async () => {
      const { test } = await hostWithPolicy();
      using _ = test;
      const { history, ledger } = test.host.paths;
      const result = { cycle: 'c-1', trigger: 'pause', startedAtMs: 1 };
      const line = {
        type: 'history.entry',
        by: 'anna',
        reason: 'paused until it is resumed: audit',
        pause,
        result,
      };
      fs.appendFileSync(history, `${JSON.stringify(line)}\n`);
      fs.rmSync(ledger);
      await start(test.reopen());
      assert.equal(test.reopen().ledger.read().pause, undefined);
      assert.equal(test.reopen().ledger.condition(), 'intact');
    });
  }

  it('missing on a new host is not reported as lost', async () => {
    using test = testHost();
    const { notices, recovered } = await start(test.reopen());
    assert.deepEqual([notices, recovered], [[], undefined]);
    assert.equal(test.reopen().ledger.read().nextGeneration, 1);
  });
});

describe('refusals that are damaged', () => {
  it('are replaced by an empty list, set aside, and reported with the code', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(test.host.paths.rejected, '[]');
    const host = test.reopen();
    const { notices } = await start(host);
    assert.deepEqual(
      notices.map((one) => [one.code, one.facts['path']]),
      [['STATE_REBUILT', test.host.paths.rejected]],
    );
    assert.deepEqual(test.reopen().refusals.read().refusals, []);
    assert.equal(fs.readFileSync(`${test.host.paths.rejected}.damaged`, 'utf8'), '[]');
    assert.equal((await cycleOn(host)).outcome, 'unchanged');
  });
});

describe('a history that is no regular file', () => {
  it('is set aside by a start, which reports it with the code', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    const { history } = test.host.paths;
    for (const path of [history, `${history}.1`]) {
      fs.rmSync(path, { force: true });
      execFileSync('mkfifo', [path]);
    }
    const { notices } = await start(test.reopen());
    assert.deepEqual(
      notices.map((one) => [one.code, one.facts['path'], one.facts['kept']]),
      [
        ['STATE_REBUILT', history, `${history}.damaged`],
        ['STATE_REBUILT', `${history}.1`, `${history}.1.damaged`],
      ],
    );
    const [row] = readHistory(test.host.paths, { limit: 1 });
    assert.deepEqual(row?.result.warnings, notices);
    assert.ok(fs.lstatSync(`${history}.damaged`).isFIFO());
  });
});

describe('a status that is damaged', () => {
  it('counts as an unclean end', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    await start(test.reopen());
    fs.writeFileSync(test.host.paths.status, '{');
    fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 2\n');
    const { repaired } = await start(test.reopen());
    assert.equal(repaired?.result.outcome, 'activated', 'read in full, and repaired');
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });
});
