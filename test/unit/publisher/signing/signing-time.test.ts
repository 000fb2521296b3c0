import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { layoutOf } from '../../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../../src/publisher/repository/repository-state.js';
import { openOnlineSigners } from '../../../../src/publisher/signing/online-signing.js';
import { resignOnline } from '../../../../src/publisher/signing/resign-online.js';
import { resignRole } from '../../../../src/publisher/signing/resign-role.js';
import {
  type ClockCheck,
  measureSignedAheadMs,
  requireReliableClock,
} from '../../../../src/publisher/signing/signing-time.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { commit } from '../../../kit/repository/ceremony.js';
import { complete, hostOf, replacing, versionsOf } from '../../../kit/repository/committed-root.js';
import {
  changeOptions,
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

interface Site {
  readonly clock: FakeClock;
  readonly rightMs: number;
  readonly repository: SampleRepository;
  readonly signed: (name?: string) => { readonly expires: string; readonly writ: Record<string, unknown> };
}

function site(dir: TempDir): Site {
  const clock = fakeClock({ mode: 'skip' });
  const repository = sampleRepository(dir, { clock });
  const signed = (name = 'timestamp.json') =>
    JSON.parse(fs.readFileSync(metadataPath(repository, name), 'utf8')).signed;
  return { clock, rightMs: clock.nowMs(), repository, signed };
}

const stateOf = ({ directory }: SampleRepository) => readRepositoryState(layoutOf(directory));

async function refreshWith({ repository, clock }: Site, clockCheck: ClockCheck) {
  const options = { ...changeOptions(repository), clock, clockCheck };
  const signers = await openOnlineSigners(repository.directory, options.keys);
  return resignOnline({ ...options, signers, roles: ['snapshot', 'timestamp'] });
}

const kernel = (answer: Awaited<ReturnType<ClockCheck['ask']>>): ClockCheck => ({ ask: async () => answer });

describe('a repository that was signed ahead', () => {
  it('is signed with the time of the last timestamp, and reports the difference', async () => {
    using dir = tempDir();
    const it = site(dir);
    it.clock.setWallTime(it.rightMs + 200 * dayMs);
    await it.repository.publish({ a: 'ahead' });
    it.clock.setWallTime(it.rightMs);
    const host = hostOf(it.repository);
    const result = await it.repository.refresh();
    assert.equal(result.signedAheadMs, 200 * dayMs);
    assert.equal(Date.parse(String(it.signed().writ['signedAt'])), it.rightMs + 200 * dayMs);
    assert.equal(Date.parse(it.signed().expires), it.rightMs + 207 * dayMs);
    assert.equal((await versionsOf(host))['timestamp'], 3);
    const published = await it.repository.publish({ a: 'right again' });
    assert.equal(published.kind === 'live' && published.signedAheadMs, 200 * dayMs);
    assert.equal(measureSignedAheadMs(stateOf(it.repository), it.clock.nowMs()), 200 * dayMs);
  });

  it('signs the snapshot too where it has expired by the time of the last timestamp', async () => {
    using dir = tempDir();
    const it = site(dir);
    it.clock.setWallTime(it.rightMs + 29 * dayMs);
    await it.repository.refresh(['timestamp']);
    it.clock.setWallTime(it.rightMs + 31 * dayMs);
    assert.deepEqual((await it.repository.refresh(['timestamp'])).versions, {
      targets: 1,
      snapshot: 2,
      timestamp: 3,
    });
  });

  it('is of today again once a root has another timestamp key', async () => {
    using dir = tempDir();
    const it = site(dir);
    it.clock.setWallTime(it.rightMs + 200 * dayMs);
    await it.repository.publish({ a: 'ahead' });
    it.clock.setWallTime(it.rightMs);
    const host = hostOf(it.repository);
    await versionsOf(host);
    const proposal = await complete(it.repository, { replace: [replacing(dir, 'timestamp')] });
    await commit(it.repository, proposal);
    assert.equal(Date.parse(String(it.signed().writ['signedAt'])), it.rightMs);
    assert.equal(measureSignedAheadMs(stateOf(it.repository), it.clock.nowMs()), undefined);
    await versionsOf(host);
    assert.equal(host.status()?.clockFloorMs, it.rightMs);
    // Made ahead of the time that hosts believe now: the same tree again is another release.
    const again = await it.repository.publish({ a: 'ahead' });
    assert.deepEqual([again.kind, again.release.serial, again.release.createdAtMs], ['live', 2, it.rightMs]);
  });

  it('names the remedy where even that time does not help', async () => {
    using dir = tempDir();
    const it = site(dir);
    it.clock.setWallTime(it.rightMs + 200 * dayMs);
    await it.repository.refresh();
    it.clock.setWallTime(it.rightMs);
    const proposal = await complete(it.repository, { validity: { root: 30 * dayMs } });
    await assert.rejects(commit(it.repository, proposal), {
      code: 'REPOSITORY_INVALID',
      hint: /Signed ahead/,
    });
  });
});

describe('a clock that is 30 days past all that was signed', () => {
  const later = async (dir: TempDir, days: number) => {
    const it = site(dir);
    await it.repository.publish({ a: 'a' });
    it.clock.setWallTime(it.rightMs + days * dayMs + 1000);
    return it;
  };

  it('signs nothing while the kernel reports it as not synchronised', async () => {
    using dir = tempDir();
    const it = await later(dir, 30);
    const metadata = layoutOf(it.repository.directory).metadata;
    const before = directoryState(metadata);
    await assert.rejects(refreshWith(it, kernel('unsynchronised')), { code: 'CLOCK_UNSURE' });
    const options = {
      ...changeOptions(it.repository),
      clock: it.clock,
      clockCheck: kernel('unsynchronised'),
    };
    await assert.rejects(resignRole('targets', options), { code: 'CLOCK_UNSURE' });
    assert.deepEqual(directoryState(metadata), before);
  });

  it('signs where the kernel reports it as synchronised, or reports nothing', async () => {
    for (const answer of ['synchronised', 'unknown'] as const) {
      using dir = tempDir();
      const it = await later(dir, 30);
      await refreshWith(it, kernel(answer));
      assert.equal(it.signed().writ['clock'], undefined);
    }
  });

  it('is asked about whatever a team has signed from the future', async () => {
    using dir = tempDir();
    const it = await later(dir, 30);
    const state = stateOf(it.repository);
    const signedBy = (atMs: number) => {
      const { targets } = state;
      const writ = { signedAt: new Date(atMs).toISOString().replace('.000Z', 'Z') };
      return {
        ...state,
        delegated: new Map([['team', { ...targets, signed: { ...targets.signed, writ } }]]),
      };
    };
    const options = { clock: it.clock, clockCheck: kernel('unsynchronised') };
    const secondMs = Math.floor(it.clock.nowMs() / 1000) * 1000;
    await assert.rejects(requireReliableClock(options, signedBy(secondMs + 400 * dayMs)), {
      code: 'CLOCK_UNSURE',
    });
    assert.equal(await requireReliableClock(options, signedBy(secondMs - dayMs)), it.clock);
  });

  it('is not asked about before', async () => {
    using dir = tempDir();
    const it = await later(dir, 29);
    const ask = async (): Promise<never> => assert.fail('asked');
    await refreshWith(it, { ask });
  });

  it('signs where an operator confirms it, and records that until the next signature', async () => {
    using dir = tempDir();
    const it = await later(dir, 40);
    await refreshWith(it, { ...kernel('unsynchronised'), stated: true });
    assert.equal(it.signed().writ['clock'], 'stated');
    await refreshWith(it, { ...kernel('unsynchronised'), stated: true });
    assert.equal(it.signed().writ['clock'], undefined);
    const options = { ...changeOptions(it.repository), clock: it.clock };
    it.clock.setWallTime(it.clock.nowMs() + 31 * dayMs);
    await resignRole('targets', { ...options, clockCheck: { ...kernel('unsynchronised'), stated: true } });
    assert.equal(it.signed('3.targets.json').writ['clock'], 'stated');
    await resignRole('targets', options);
    assert.equal(it.signed('4.targets.json').writ['clock'], undefined);
  });
});
