// What a start looks at, of a host that lives by cron: a pull may rest on the last full look, and never for long.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { verifyPolicy } from '../../../../src/agent/integrity/verify-policy.js';
import { exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { type StartOptions, startHost } from '../../../../src/agent/startup/start-host.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { looksBelow } from '../../../kit/disk/count-looks.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const signal = new AbortController().signal;
const everyMs = 3_600_000;
const scrub = { everyMs, repair: 'yes', bytesPerSecond: 1e9 } as const;
const small = { 'policy.yaml': 'version: 1\n', 'views/eu.yaml': 'eu: 1\n' };

/** As `writ pull` without an agent does it. */
function pullStarts(host: Host, more: Partial<StartOptions> = {}) {
  return startHost(host, { cycle: 'c-ab', signal, hasLaterScrub: true, ...more });
}

interface Standing {
  readonly test: TestHost;
  readonly file: string;
  /** A host of this configuration, as the next process opens it. */
  readonly next: (more?: Partial<typeof scrub> | { repair: 'yes'; bytesPerSecond: number }) => Host;
}

/** Its first pull has read everything. */
async function standing(files: Readonly<Record<string, string>> = small): Promise<Standing> {
  const test = testHost();
  await test.publish('access', files, { serial: 1 });
  await test.pull();
  const next: Standing['next'] = (more = scrub) => test.reopen({ config: { scrub: more as typeof scrub } });
  await pullStarts(next());
  return { test, next, file: join(test.host.paths.current, 'access/policy.yaml') };
}

/** One process has started where nothing was, and brought the policy. */
async function firstSynced(): Promise<Standing> {
  const test = testHost({ config: { scrub } });
  await test.publish('access', small, { serial: 1 });
  await pullStarts(test.host);
  await test.pull();
  return { test, next: () => test.reopen(), file: join(test.host.paths.current, 'access/policy.yaml') };
}

describe('a pull with no agent, in a boot in which all was read', () => {
  it('looks at no file of a policy, however many it has', async () => {
    const counts: number[] = [];
    for (const count of [3, 300]) {
      const files = Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`rules-${index % 7}/${index}.conf`, `allow ${index}\n`]),
      );
      const { test, next } = await standing(files);
      using _ = test;
      const host = next();
      const paths = await looksBelow(host.paths.bundles, () => pullStarts(host));
      assert.deepEqual(
        paths.filter((path) => /rules-|\.conf/.test(path)),
        [],
      );
      counts.push(paths.length);
    }
    assert.equal(counts[0], counts[1]);
    assert.ok((counts[0] ?? 99) <= 12, `${counts[0]} looks`);
  });

  it('does not see within scrub.every what somebody edits, and mends it at the first pull after', async () => {
    const { test, file, next } = await standing();
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

  it('rests behind a first sync on the start before it: nothing was there, and what came was digested as it was staged', async () => {
    const { test, file, next } = await firstSynced();
    using _ = test;
    const host = next();
    const paths = await looksBelow(host.paths.bundles, () => pullStarts(host));
    assert.deepEqual(
      paths.filter((path) => path.includes('policy.yaml')),
      [],
    );
    assert.deepEqual(host.ledger.read().scrub?.counts.looks, 0, 'and calls that no look');
    fs.writeFileSync(file, 'version: 2, by hand\n');
    await test.clock.advance(everyMs - 1000);
    assert.equal((await pullStarts(next())).repaired, undefined);
    await test.clock.advance(1000);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
  });

  it('counts no later staging as a look: an update does not put off the first one', async () => {
    const { test, next } = await firstSynced();
    using _ = test;
    await test.clock.advance(everyMs - 1000);
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    assert.equal((await test.pull()).outcome, 'activated');
    fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 2\n');
    await test.clock.advance(1000);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('behind a first sync looks in full after a boot, an unclean end, and where the clock was set back', async () => {
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

  it('takes no quick look at an empty host for a full one', async () => {
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

  it('rests on no look whose age nobody knows: the clock was set back', async () => {
    const { test, file, next } = await standing();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    test.clock.setWallTime(test.clock.nowMs() - 10 * everyMs);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('sees at once a tree that is gone, and a link that leads elsewhere', async () => {
    const { test, file, next } = await standing();
    using _ = test;
    const tree = fs.realpathSync(join(file, '..'));
    fs.renameSync(tree, `${tree}-away`);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
    fs.rmSync(test.host.paths.current);
    assert.notEqual((await pullStarts(next())).repaired, undefined);
    assert.equal(test.read('access/policy.yaml'), small['policy.yaml']);
  });

  it('sees at once that a kept archive or manifest is lost, and that a tree may be written by others', async () => {
    for (const lost of ['archive.tar.br', 'manifest.json', 'record.json']) {
      const { test, next } = await standing();
      using _ = test;
      const kept = join(test.host.paths.archives, 'access');
      const [release = ''] = fs.readdirSync(kept);
      fs.rmSync(join(kept, release, lost));
      const { repaired, damage } = await pullStarts(next());
      assert.ok(repaired !== undefined || damage !== undefined, lost);
    }
    const { test, file, next } = await standing();
    using _ = test;
    fs.chmodSync(fs.realpathSync(join(file, '..')), 0o777);
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated');
  });

  it('is no less than a look at names and sizes for who looks later to nobody: rollback, resume, pull --force', async () => {
    const { test, file, next } = await standing();
    using _ = test;
    fs.rmSync(file);
    const { repaired } = await startHost(next(), { cycle: 'c-ab', signal });
    assert.equal(repaired?.result.outcome, 'activated');
  });

  it('with scrub.every off, where no later look is to come, still looks at names and sizes', async () => {
    const { test, file, next } = await standing();
    using _ = test;
    fs.rmSync(file);
    const { repaired } = await pullStarts(next({ repair: 'yes', bytesPerSecond: 1e9 }));
    assert.equal(repaired?.result.outcome, 'activated');
  });

  it('is read in full after an unclean end and after a boot, whenever the last look was', async () => {
    for (const spoil of ['unclean', 'boot'] as const) {
      const { test, file, next } = await standing();
      using _ = test;
      fs.writeFileSync(file, 'VERSION: 1\n');
      const host = next();
      if (spoil === 'boot') setLedger(host.ledger, { verifiedBootId: 'another boot' });
      else fs.mkdirSync(join(host.paths.staging, 'c-dead'));
      assert.equal((await pullStarts(host)).repaired?.result.outcome, 'activated', spoil);
    }
  });

  it('leaves it to verify to look now', async () => {
    const { test, file, next } = await standing();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    const host = next();
    const how = { host: () => host, exclusive: exclusiveAlone, by: 'anna', onEvent: () => undefined };
    const found = await verifyPolicy({ ...how, repair: 'no', signal });
    assert.equal(found.outcome, 'damaged');
    assert.equal((await pullStarts(next())).repaired?.result.outcome, 'activated', 'known damage is mended');
  });
});
