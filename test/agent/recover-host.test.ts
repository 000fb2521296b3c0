import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { activeGenerationNumber, pointCurrentAt } from '../../src/agent/generations.js';
import type { Host } from '../../src/agent/host.js';
import { writeJournal } from '../../src/agent/journal.js';
import { recoverHost } from '../../src/agent/recover-host.js';
import { resume } from '../../src/agent/resume.js';
import { syncCycle } from '../../src/agent/sync-cycle.js';
import type { CrashCount } from '../../src/core/crash-count.js';
import type { CycleResult } from '../../src/core/cycle-report.js';
import type { Journal } from '../../src/core/recovery.js';
import { cycleOn } from '../support/cycle-on.js';
import { directoryState } from '../support/directory-state.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../support/scripted-driver.js';
import { type TestHost, testHost } from '../support/test-host.js';

const signal = new AbortController().signal;
const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });

interface Crashed {
  readonly test: TestHost;
  readonly host: Host;
  readonly driver: ScriptedDriver;
}

/** A host whose swap from generation 1 to 2 left this journal and this link, after so many crashes before. */
async function crashed(journal: Partial<Journal>, current: number, crashes = 0): Promise<Crashed> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  for (const serial of [1, 2]) {
    await test.publish('access', policy(serial), { serial });
    await test.pull();
  }
  const { paths, durable } = test.host;
  const base = { writ: 1, cycle: 'c-0', from: 1, to: 2, startedAtMs: 0, kind: 'update' } as const;
  writeJournal(paths, durable, { ...base, direction: 'forward', ...journal });
  pointCurrentAt(paths, durable, { generation: current, cycle: 'c-0' });
  driver.told.length = 0;
  const host = test.reopen();
  if (crashes > 0) {
    const manifestDigests = {
      access: test.host.client.knownTarget('access', 'stable')!.release.manifest.digest,
    };
    host.ledger.write({ ...host.ledger.read(), crashes: { manifestDigests, count: crashes } });
  }
  return { test, host, driver };
}

async function recover(host: Host): Promise<CycleResult | undefined> {
  const end = await recoverHost(host, { cycle: 'c-ab', signal });
  assert.deepEqual(fs.readdirSync(host.paths.staging), []);
  return end?.result;
}

const codes = (result: CycleResult | undefined): (string | undefined)[] => [
  result?.outcome,
  ...(result?.problems ?? []).map((one) => one.code),
];

describe('recovery', () => {
  it('does and writes nothing when nothing was in flight', async () => {
    using test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    const before = directoryState(test.directory);
    assert.equal(await recover(test.reopen()), undefined);
    assert.deepEqual(directoryState(test.directory), before);
  });

  it('removes the half-written files of a kill, and no others', async () => {
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

  it('forgets a swap whose link never moved: nobody was told', async () => {
    const { test, host, driver } = await crashed({}, 1);
    using _ = test;
    assert.equal(await recover(host), undefined);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [1, []]);
    assert.equal(fs.existsSync(host.paths.journal), false);
  });

  it('goes forward behind the link, once', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    const result = await recover(host);
    assert.deepEqual([codes(result), result?.trigger], [['activated'], 'recovery']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [2, ['a 2']]);
    assert.equal(host.ledger.read().lastKnownGood, 2);
    assert.equal(fs.existsSync(host.paths.journal), false);
    assert.equal(await recover(host), undefined);
  });

  it('goes back at the second crash, tells the workers, and says that it was cut short', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['failed', 'INTERRUPTED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [1, ['a 1']]);
    assert.deepEqual(host.refusals.read().refusals, [], 'a crash is no verdict');
  });

  it('blocks the releases that the swap brought at the third crash, wherever the link is', async () => {
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

  it('tells everybody again when the way back had reached the link', async () => {
    const { test, host, driver } = await crashed({ direction: 'back' }, 1);
    using _ = test;
    await recover(host);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [1, ['a 1']]);
  });

  it('goes back at once when the new generation is not whole', async () => {
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

  it('remembers a refusal on the way forward, as the cycle would have', async () => {
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

  it('starts all the same when the workers refuse the way back', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    driver.workers.set('a', refuses('no'));
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED', 'WORKER_REFUSED']);
    assert.equal(activeGenerationNumber(host.paths), 1);
    assert.equal(await recover(host), undefined);
  });

  it('asks nobody again who said yes, when only the journal was left by a commit', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    host.ledger.write({ ...host.ledger.read(), committedCycle: 'c-0' });
    driver.workers.set('a', refuses('no'));
    assert.equal(await recover(host), undefined);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [2, []]);
    assert.equal(fs.existsSync(host.paths.journal), false);
    assert.equal(host.ledger.read().previous, 1);
  });

  it('goes back to the last known good generation when the one before the swap is not whole', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    await test.publish('access', policy(3), { serial: 3 });
    await test.pull();
    journalOf(test, { from: 2, to: 3 });
    spoil(test, 2);
    const { ledger } = test.host;
    ledger.write({ ...ledger.read(), ...crashCount(test, 1), lastKnownGood: 1 });
    const again = test.reopen();
    assert.deepEqual(codes(await recover(again)), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told.at(-1)], [1, 'a 1']);
  });

  it('stays at the new generation, and tells of it, when it alone is whole', async () => {
    const { test, host, driver } = await crashed({}, 2, 1);
    using _ = test;
    spoil(test, 1);
    assert.deepEqual(codes(await recover(host)), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [2, ['a 2']]);
    assert.equal(host.ledger.read().lastKnownGood, 2);
    assert.equal((await cycleOn(host)).exitCode, 0);
  });

  it('leaves the link and says what to do when nothing is whole', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    spoil(test, 1);
    spoil(test, 2);
    const result = await recover(host);
    assert.deepEqual(codes(result), ['failed', 'STATE_DAMAGED']);
    assert.match(String(result?.problems[0]?.hint), /writ pull --force/);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [2, []]);
    assert.equal(await recover(host), undefined);
    const forced = await test.pull({ force: 'yes' });
    assert.deepEqual([forced.outcome, test.read('access/policy.yaml')], ['activated', 'version: 2\n']);
  });

  it('tells nobody at the fourth crash: workers stay due, and the start ends', async () => {
    const { test, host, driver } = await crashed({ direction: 'back' }, 2, 3);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [1, []]);
    assert.equal(host.ledger.read().workers['app/a']?.state, 'waiting');
    await cycleOn(host);
    assert.deepEqual(driver.told, ['a 1'], 'told apart');
  });
});

describe('a candidate that crashes', () => {
  /** Swaps to the newest release and dies behind the link. */
  async function crashInSwap(host: Host, crashes?: CrashCount): Promise<void> {
    const { paths, durable } = host;
    assert.equal((await cycleOn(host)).outcome, 'activated');
    const to = activeGenerationNumber(paths)!;
    const { lastKnownGood: _, committedCycle: _cycle, ...ledger } = host.ledger.read();
    host.ledger.write({ ...ledger, ...(crashes ? { crashes } : {}), lastKnownGood: 1 });
    const base = { writ: 1, cycle: 'c-0', from: 1, startedAtMs: 0, kind: 'update' } as const;
    writeJournal(paths, durable, { ...base, to, direction: 'forward' });
  }

  it('is known again in its next generation, over undo and cycle, and blocked at the third crash', async () => {
    using test = testHost();
    for (const serial of [1, 2]) {
      await test.publish('access', policy(serial), { serial });
      if (serial === 1) await test.pull();
    }
    await crashInSwap(test.host);
    // The first start goes forward, and dies there: the second one goes back.
    const first = test.reopen();
    first.ledger.write({ ...first.ledger.read(), ...crashCount(test, 1) });
    assert.deepEqual(codes(await recover(test.reopen())), ['failed', 'INTERRUPTED']);
    const again = test.reopen();
    const { crashes } = again.ledger.read();
    assert.equal(crashes?.count, 2);
    await crashInSwap(again, crashes);
    const third = test.reopen();
    assert.deepEqual(codes(await recover(third)), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.equal(activeGenerationNumber(third.paths), 1);
    const polled = await cycleOn(third);
    assert.deepEqual([polled.exitCode, polled.problems[0]?.code], [6, 'ACTIVATION_BLOCKED']);
  });

  it('is tried again after `writ resume`, from the beginning', async () => {
    const { test, host } = await crashed({}, 2, 2);
    using _ = test;
    await recover(host);
    assert.equal((await cycleOn(host)).outcome, 'blocked');
    resume(host);
    assert.equal(host.ledger.read().crashes, undefined);
    assert.equal((await cycleOn(host)).outcome, 'activated');
  });

  it('is tried by force, and free when that reached its commit', async () => {
    const { test, host } = await crashed({}, 2, 2);
    using _ = test;
    await recover(host);
    const forced = await syncCycle(host, { cycle: 'c-f', trigger: 'force', force: 'yes', signal });
    assert.equal(forced.result.outcome, 'activated');
    assert.deepEqual([host.ledger.read().blocked, host.ledger.read().crashes], [undefined, undefined]);
  });

  it('stays blocked while another bundle moves, and only it', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'dns-edge' }],
      groups: { app: { driver } },
    });
    const same = { 'policy.yaml': 'version: 2\n' };
    await test.publish('access', policy(1), { serial: 1 });
    await test.publish('dns-edge', policy(1), { serial: 1 });
    await test.pull();
    await test.publish('access', same, { serial: 2 });
    const { digest } = test.host.client.knownTarget('access', 'stable')?.release.manifest ?? {};
    assert.ok(digest);
    await test.pull();
    journalOf(test, { from: 1, to: 2 });
    test.host.ledger.write({ ...test.host.ledger.read(), ...crashCount(test, 2) });
    const host = test.reopen();
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
    // The same files in another bundle are another release.
    await test.publish('dns-edge', same, { serial: 2 });
    const result = await cycleOn(host);
    assert.deepEqual(
      result.bundles.map((one) => [one.bundle, one.outcome]),
      [
        ['access', 'blocked'],
        ['dns-edge', 'activated'],
      ],
    );
    const { blocked } = host.ledger.read();
    assert.deepEqual(Object.keys(blocked?.releases ?? {}), ['access']);
    assert.equal((await cycleOn(host)).bundles[0]?.outcome, 'blocked', 'and stays so');
  });
});

describe('a journal that is damaged', () => {
  const broken = ['', '{', '[]', '{"writ":1,"to":2}', 'x'.repeat(70_000)];

  for (const text of broken) {
    it(`(${text.slice(0, 20)}) is made anew from the disk: an unfinished swap is finished`, async () => {
      const { test, host, driver } = await crashed({}, 2);
      using _ = test;
      host.ledger.write({ ...host.ledger.read(), lastKnownGood: 1 });
      fs.writeFileSync(host.paths.journal, text);
      assert.deepEqual(codes(await recover(host)), ['activated']);
      assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [2, ['a 2']]);
      assert.equal(fs.readFileSync(`${host.paths.journal}.damaged`, 'utf8'), text);
      assert.equal(fs.existsSync(host.paths.journal), false);
      assert.deepEqual(
        host.ledger.read().notices?.map((one) => one.code),
        ['STATE_REBUILT'],
      );
    });
  }

  it('tells everybody again where the link is at the last known good generation', async () => {
    const { test, host, driver } = await crashed({}, 1);
    using _ = test;
    host.ledger.write({ ...host.ledger.read(), lastKnownGood: 1 });
    fs.writeFileSync(host.paths.journal, '{');
    assert.deepEqual(codes(await recover(host)), ['activated']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.told], [1, ['a 1']]);
  });

  it('where nothing is active is nothing', async () => {
    using test = testHost();
    const host = test.reopen();
    fs.writeFileSync(host.paths.journal, '{');
    assert.equal(await recover(host), undefined);
    assert.equal(fs.existsSync(host.paths.journal), false);
  });
});

function journalOf({ host }: TestHost, move: { from: number; to: number }): void {
  const base = { writ: 1, cycle: 'c-0', direction: 'forward', startedAtMs: 0, kind: 'update' } as const;
  writeJournal(host.paths, host.durable, { ...base, ...move });
}

/** Crashes of the newest release of `access`. */
function crashCount(
  test: TestHost,
  count: number,
): Required<Pick<ReturnType<Host['ledger']['read']>, 'crashes'>> {
  const access = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
  return { crashes: { manifestDigests: { access }, count } };
}

/** Changes a file of the generation's own tree. */
function spoil({ host: { paths } }: TestHost, generation: number): void {
  const [tree] = fs
    .readdirSync(join(paths.bundles, 'access'))
    .filter((name) => name.endsWith(`.${generation}`));
  fs.writeFileSync(join(paths.bundles, 'access', tree!, 'policy.yaml'), 'VERSION: 9\n');
}
