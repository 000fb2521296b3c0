import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { activeGenerationNumber } from '../../../../src/agent/generations/generations.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import type { Journal } from '../../../../src/agent/state/recovery-rules.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import {
  codes,
  crashCount,
  crashed,
  journalOf,
  policy,
  recover,
  ruin,
} from '../../../kit/host/crashed-host.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, refuses } from '../../../kit/workers/scripted-driver.js';

describe('recovery', () => {
  it('writes nothing when no swap was interrupted', async () => {
    using test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    const before = directoryState(test.directory);
    assert.equal(await recover(test.reopen()), undefined);
    assert.deepEqual(directoryState(test.directory), before);
  });

  it('removes the temporary files of a killed process, and no other files', async () => {
    using test = testHost();
    const { paths } = test.host;
    for (const directory of [paths.state, paths.trust, paths.run])
      fs.writeFileSync(join(directory, '.writ-tmp-0123456789ab'), '{');
    fs.writeFileSync(join(paths.run, 'mine'), '');
    await recover(test.host);
    assert.deepEqual(fs.readdirSync(paths.run), ['mine']);
    for (const directory of [paths.state, paths.trust])
      assert.ok(!fs.readdirSync(directory).some((name) => name.startsWith('.writ-tmp-')));
  });

  it('discards a swap that did not move the link, and notifies no worker', async () => {
    const { test, host, driver } = await crashed({}, 1);
    using _ = test;
    assert.equal(await recover(host), undefined);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [1, []]);
    assert.equal(fs.existsSync(host.paths.journal), false);
  });

  it('finishes a swap that moved the link, once', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    const result = await recover(host);
    assert.deepEqual([codes(result), result?.trigger], [['activated'], 'recovery']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [2, ['a 2']]);
    assert.equal(host.ledger.read().lastKnownGood, 2);
    assert.equal(fs.existsSync(host.paths.journal), false);
    assert.equal(await recover(host), undefined);
  });

  it('undoes the swap at the second crash, notifies the workers, and reports the interruption', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['failed', 'INTERRUPTED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [1, ['a 1']]);
    assert.deepEqual(host.refusals.read().refusals, [], 'a crash is no verdict');
  });

  it('blocks the releases that the swap brought at the third crash, for each position of the link', async () => {
    for (const [direction, current] of [
      ['forward', 2],
      ['back', 1],
    ] as const) {
      const { test, host } = await crashed({ direction }, current, 2);
      using _ = test;
      const release = test.host.client.knownTarget('access', 'stable')!.release;
      assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
      assert.deepEqual(host.ledger.read().blocked?.manifestDigests, [release.manifest.digest]);
      const next = await cycleOn(host);
      assert.deepEqual([next.exitCode, next.generation], [6, 1], direction);
      await test.publish('access', policy(3), { serial: 3 });
      assert.equal((await cycleOn(host)).outcome, 'activated');
    }
  });

  it('notifies all workers again when the undo had moved the link', async () => {
    const { test, host, driver } = await crashed({ direction: 'back' }, 1);
    using _ = test;
    await recover(host);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [1, ['a 1']]);
  });

  it('undoes the swap at the first crash when the new generation is damaged', async () => {
    const { test, host } = await crashed({}, 2);
    using _ = test;
    const [tree] = fs.readdirSync(join(host.paths.bundles, 'access')).filter((name) => name.endsWith('.2'));
    fs.rmSync(join(host.paths.bundles, 'access', tree!), { recursive: true });
    assert.deepEqual(codes(await recover(host)), ['failed', 'INTERRUPTED']);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('removes the link of a first activation that cannot be finished', async () => {
    const { test, host } = await crashed({}, 2, 1);
    using _ = test;
    const { from: _from, ...journal } = JSON.parse(fs.readFileSync(host.paths.journal, 'utf8')) as Journal;
    writeJournal(host.paths, host.durable, journal);
    await recover(host);
    assert.equal(activeGenerationNumber(host.paths), undefined);
  });

  it('records a worker refusal of the finished swap, as the cycle would', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    driver.workers.set('a', (generation) => (generation === 2 ? refuses('no')() : confirms(generation)));
    assert.deepEqual(codes(await recover(host)), ['rolled-back', 'WORKER_REFUSED']);
    assert.equal(activeGenerationNumber(host.paths), 1);
    assert.deepEqual(
      host.refusals.read().refusals.map((one) => [one.bundle, one.serial, one.code]),
      [['access', 2, 'WORKER_REFUSED']],
    );
  });

  it('does not prevent the start when the workers refuse the restored generation', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    driver.workers.set('a', refuses('no'));
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED', 'WORKER_REFUSED']);
    assert.equal(activeGenerationNumber(host.paths), 1);
    assert.equal(await recover(host), undefined);
  });

  it('notifies no worker that confirmed, when a commit left only its journal', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    setLedger(host.ledger, { committedCycle: 'c-0' });
    driver.workers.set('a', refuses('no'));
    assert.equal(await recover(host), undefined);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [2, []]);
    assert.equal(fs.existsSync(host.paths.journal), false);
    assert.equal(host.ledger.read().previous, 1);
  });

  it('moves to the last known good generation when the one before the swap is damaged', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    await test.publish('access', policy(3), { serial: 3 });
    await test.pull();
    journalOf(test, { from: 2, to: 3 });
    ruin(test, 2);
    const { ledger } = test.host;
    setLedger(ledger, { ...crashCount(test, 1), lastKnownGood: 1 });
    const again = test.reopen();
    assert.deepEqual(codes(await recover(again)), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified.at(-1)], [1, 'a 1']);
  });

  it('keeps the new generation, and notifies workers of it, when no other is intact', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    ruin(test, 1);
    assert.deepEqual(codes(await recover(host)), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [2, ['a 2']]);
    assert.equal(host.ledger.read().lastKnownGood, 2);
    assert.equal((await cycleOn(host)).exitCode, 0);
  });

  it('keeps the link and returns a hint when no generation is intact', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    ruin(test, 1);
    ruin(test, 2);
    const result = await recover(host);
    assert.deepEqual(codes(result), ['failed', 'STATE_DAMAGED']);
    assert.match(String(result?.problems[0]?.hint), /writ pull --force/);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [2, []]);
    assert.equal(await recover(host), undefined);
    const forced = await test.pull({ force: 'yes' });
    assert.deepEqual([forced.outcome, test.read('access/policy.yaml')], ['activated', 'version: 2\n']);
  });

  it('notifies no worker at the fourth crash: workers stay pending, and the start ends', async () => {
    const { test, host, driver } = await crashed({ direction: 'back' }, 2, 3);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [1, []]);
    assert.equal(host.ledger.read().workers['app/a']?.state, 'pending');
    await cycleOn(host);
    assert.deepEqual(driver.notified, ['a 1'], 'notified by the next cycle');
  });
});

/** Changes a file of the generation's own tree. */
