// How much of the policy a start scans on a host that cron pulls: a pull may rely on a full scan for `scrub.every` at most.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { verifyPolicy } from '../../../../src/agent/integrity/verify-policy.js';
import { exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { type StartOptions, startHost } from '../../../../src/agent/startup/start-host.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { readCallsBelow } from '../../../kit/disk/count-looks.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const signal = new AbortController().signal;
const everyMs = 3_600_000;
const scrub = { everyMs, repair: 'yes', bytesPerSecond: 1e9 } as const;
const small = { 'policy.yaml': 'version: 1\n', 'views/eu.yaml': 'eu: 1\n' };

/** The start of a standalone `writ pull`. */
function pullStarts(host: Host, more: Partial<StartOptions> = {}) {
  return startHost(host, { cycle: 'c-ab', signal, hasLaterScrub: true, ...more });
}

interface PreparedHost {
  readonly test: TestHost;
  readonly file: string;
  /** A host of this configuration, as the next process opens it. */
  readonly next: (more?: Partial<typeof scrub> | { repair: 'yes'; bytesPerSecond: number }) => Host;
}

/** A host after a pull and a first start, which read all files. */
async function hostWithPolicy(files: Readonly<Record<string, string>> = small): Promise<PreparedHost> {
  const test = testHost();
  await test.publish('access', files, { serial: 1 });
  await test.pull();
  const next: PreparedHost['next'] = (more = scrub) =>
    test.reopen({ config: { scrub: more as typeof scrub } });
  await pullStarts(next());
  return { test, next, file: join(test.host.paths.current, 'access/policy.yaml') };
}

/** A host after its first process, which started without a policy and activated the first release. */
async function firstSynced(): Promise<PreparedHost> {
  const test = testHost({ config: { scrub } });
  await test.publish('access', small, { serial: 1 });
  await pullStarts(test.host);
  await test.pull();
  return { test, next: () => test.reopen(), file: join(test.host.paths.current, 'access/policy.yaml') };
}

describe('a standalone pull, after a full scan in the same boot', () => {
  it('examines no file of the policy, for any number of files', async () => {
    const counts: number[] = [];
    for (const count of [3, 300]) {
      const files = Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`rules-${index % 7}/${index}.conf`, `allow ${index}\n`]),
      );
      const { test, next } = await hostWithPolicy(files);
      using _ = test;
      const host = next();
      const paths = await readCallsBelow(host.paths.bundles, () => pullStarts(host));
      assert.deepEqual(
        paths.filter((path) => /rules-|\.conf/.test(path)),
        [],
      );
      counts.push(paths.length);
    }
    assert.equal(counts[0], counts[1]);
    assert.ok((counts[0] ?? 99) <= 12, `${counts[0]} paths`);
  });

  it('ignores an edited file within scrub.every, and repairs it at the first pull after that', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(file, 'version: 2, by hand\n');
    await test.clock.advance(everyMs - 1000);
    const early = await pullStarts(next());
    assert.deepEqual([early.damage, early.repaired], [undefined, undefined]);
    await test.clock.advance(1000);
    const { damage, repaired } = await pullStarts(next());
    assert.deepEqual([damage, repaired?.result.outcome], [undefined, 'activated']);
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
  });

  it('skips the scan after a first sync, because staging digested all files and none existed before', async () => {
    const { test, file, next } = await firstSynced();
    using _ = test;
    const host = next();
    const paths = await readCallsBelow(host.paths.bundles, () => pullStarts(host));
    assert.deepEqual(
      paths.filter((path) => path.includes('policy.yaml')),
      [],
    );
    assert.deepEqual(host.ledger.read().scrub?.counts.looks, 0, 'staging is not counted as a scan');
    fs.writeFileSync(file, 'version: 2, by hand\n');
    await test.clock.advance(everyMs - 1000);
    assert.equal((await pullStarts(next())).repaired, undefined);
    await test.clock.advance(1000);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
  });

  it('counts the staging of an update as no scan, so the first scan is not postponed', async () => {
    const { test, next } = await firstSynced();
    using _ = test;
    await test.clock.advance(everyMs - 1000);
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    assert.equal((await test.pull()).outcome, 'activated');
    fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 2\n');
    await test.clock.advance(1000);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('scans in full after a first sync, if the host booted, the end was unclean or the clock was set back', async () => {
    for (const spoil of ['boot', 'unclean', 'clock'] as const) {
      const { test, file, next } = await firstSynced();
      using _ = test;
      fs.writeFileSync(file, 'VERSION: 1\n');
      const host = next();
      if (spoil === 'boot') setLedger(host.ledger, { verifiedBootId: 'another boot' });
      if (spoil === 'unclean') fs.mkdirSync(join(host.paths.staging, 'c-dead'));
      if (spoil === 'clock') test.clock.setWallTime(test.clock.nowMs() - 1000);
      assert.equal((await pullStarts(host)).repaired?.result.outcome, 'activated', spoil);
    }
  });

  it('does not count a quick scan of an empty host as a full scan', async () => {
    const test = testHost({ config: { scrub } });
    using _ = test;
    await pullStarts(test.reopen());
    const before = test.reopen().ledger.read().scrub;
    assert.equal(before?.atMs, test.clock.nowMs());
    await test.clock.advance(1000);
    await pullStarts(test.reopen());
    assert.deepEqual(test.reopen().ledger.read().scrub, before);
    await test.clock.advance(everyMs);
    await pullStarts(test.reopen());
    assert.equal(test.reopen().ledger.read().scrub?.atMs, test.clock.nowMs());
  });

  it('scans in full when the age of the last scan is unknown, because the clock was set back', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    test.clock.setWallTime(test.clock.nowMs() - 10 * everyMs);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('detects a missing tree and a missing link at once', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    const tree = fs.realpathSync(join(file, '..'));
    fs.renameSync(tree, `${tree}-away`);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
    fs.rmSync(test.host.paths.current);
    assert.notEqual((await pullStarts(next())).repaired, undefined);
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
  });

  it('detects a missing retained file and a tree that other users can write at once', async () => {
    for (const lost of ['archive.tar.br', 'manifest.json', 'record.json']) {
      const { test, next } = await hostWithPolicy();
      using _ = test;
      const kept = join(test.host.paths.archives, 'access');
      const [release = ''] = fs.readdirSync(kept);
      fs.rmSync(join(kept, release, lost));
      const { repaired, damage } = await pullStarts(next());
      assert.ok(repaired !== undefined || damage !== undefined, lost);
    }
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.chmodSync(fs.realpathSync(join(file, '..')), 0o777);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('scans at least names and sizes for a command without a later scrub: rollback, resume, pull --force', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(file);
    const { repaired } = await startHost(next(), { cycle: 'c-ab', signal });
    assert.equal(repaired?.result.outcome, 'activated');
  });

  it('scans names and sizes when scrub.every is not set, because no later scrub follows', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.rmSync(file);
    const { repaired } = await pullStarts(next({ repair: 'yes', bytesPerSecond: 1e9 }));
    assert.equal(repaired?.result.outcome, 'activated');
  });

  it('scans in full after an unclean end and after a boot, at any age of the last scan', async () => {
    for (const spoil of ['unclean', 'boot'] as const) {
      const { test, file, next } = await hostWithPolicy();
      using _ = test;
      fs.writeFileSync(file, 'VERSION: 1\n');
      const host = next();
      if (spoil === 'boot') setLedger(host.ledger, { verifiedBootId: 'another boot' });
      else fs.mkdirSync(join(host.paths.staging, 'c-dead'));
      assert.equal((await pullStarts(host)).repaired?.result.outcome, 'activated', spoil);
    }
  });

  it('does not affect verify, which scans in full at once', async () => {
    const { test, file, next } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    const host = next();
    const how = { host: () => host, exclusive: exclusiveAlone, by: 'anna', onEvent: () => undefined };
    const found = await verifyPolicy({ ...how, repair: 'no', signal });
    assert.equal(found.outcome, 'damaged');
    assert.equal(
      (await pullStarts(next())).repaired?.result.outcome,
      'activated',
      'known damage is repaired',
    );
  });
});
