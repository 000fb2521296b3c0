import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bakeStatus, findBakeWait } from '../../../../src/agent/report/bake-status.js';
import type { BakingGroup } from '../../../../src/agent/settled/evidence-rules.js';
import type { Bake, Ledger, WorkerLedger } from '../../../../src/agent/state/ledger.js';

const startedAtMs = 1_000_000;
const forMs = 600_000;
const nowMs = startedAtMs + forMs;
const plain = {
  ...{ serial: 2, manifestDigest: `sha256:${'a'.repeat(64)}`, bootId: 'b' },
  ...{ startedAtMs, observedMs: forMs / 2, seenAtMs: nowMs },
} as Bake;
const bake = (more: Partial<Bake> = {}): Bake => ({ ...plain, ...more });
const healthy: WorkerLedger = { wanted: 2, confirmed: 2, state: 'confirmed', text: 'ok', atMs: startedAtMs };
const group = (name: string, more: Partial<WorkerLedger> = {}): BakingGroup => ({
  ...{ group: name, min: 1 },
  workers: [{ key: `${name}/a`, entry: { ...healthy, ...more }, runs: undefined, isDead: false }],
});
const wait = (given: Bake, groups: readonly BakingGroup[] = [group('dns')], isObserved = true) =>
  findBakeWait(given, { groups, forMs, nowMs, isObserved });

describe('findBakeWait', () => {
  it('finds none while the bake time passes', () => {
    assert.equal(wait(bake()), undefined);
    assert.equal(wait(bake({ seenAtMs: nowMs - 59_999 })), undefined);
  });

  it('names the groups of which no living worker has taken the release', () => {
    const untaken = bake({ untakenAtMs: nowMs });
    const groups = [group('dns'), group('web', { state: 'unreachable' })];
    assert.deepEqual(wait(untaken, groups), { what: 'worker', of: ['web'] });
    // The observation found a dead process that the ledger does not show.
    assert.deepEqual(wait(untaken, [group('dns')]), { what: 'worker', of: ['dns'] });
  });

  it('names the next observation if the agent made none for a minute, for example while it notifies workers', () => {
    assert.deepEqual(wait(bake({ seenAtMs: nowMs - 60_000 })), { what: 'observation' });
  });

  it('names the worker with a new process that is not notified yet, and not its living group', () => {
    const ends = [{ atMs: nowMs - 1000, kind: 'unrecorded', livedMs: 1000 }] as const;
    const runs = { process: '8', sinceMs: startedAtMs, watchedSinceMs: startedAtMs, bootId: 'b', ends };
    const entry: WorkerLedger = { ...healthy, state: 'pending', appeared: true };
    const groups = [group('dns')].map((one) => ({
      ...one,
      workers: [...one.workers, { key: 'dns/b', entry, runs, isDead: false }],
    }));
    assert.deepEqual(wait(bake(), groups), { what: 'successor', of: ['dns/b'] });
  });

  it('names the agent if none runs, even right after an observation and beside a missing worker', () => {
    assert.deepEqual(wait(bake(), undefined, false), { what: 'agent' });
    assert.deepEqual(wait(bake({ untakenAtMs: nowMs }), undefined, false), { what: 'agent' });
  });

  it('names the worker with an unanswered probe that passed before', () => {
    const probed = { wrong: 0, silence: 'timed out' } as NonNullable<WorkerLedger['probed']>;
    assert.deepEqual(wait(bake(), [group('dns', { probed })]), { what: 'probe', of: ['dns/a'] });
    assert.equal(
      wait(bake(), [group('dns', { probed, confirmed: 1 })]),
      undefined,
      'it proved nothing before',
    );
  });

  it('names the worker with a failing probe only after the bake time, which passes until then', () => {
    const groups = [group('dns', { probed: { wrong: 2 } as NonNullable<WorkerLedger['probed']> })];
    assert.equal(wait(bake(), groups), undefined);
    assert.deepEqual(wait(bake({ observedMs: forMs }), groups), { what: 'probe', of: ['dns/a'] });
  });

  it('names what the end waits for also before the agent has written the observed time', () => {
    const groups = [group('dns', { probed: { wrong: 2 } as NonNullable<WorkerLedger['probed']> })];
    const seen = bake({ observedMs: forMs - 20_000, seenAtMs: nowMs - 20_000 });
    assert.deepEqual(wait(seen, groups), { what: 'probe', of: ['dns/a'] });
  });

  it('names no worker after a confirmation that the last observation did not have', () => {
    const untaken = bake({ seenAtMs: nowMs - 1000, untakenAtMs: nowMs - 1000 });
    assert.equal(wait(untaken, [group('dns', { atMs: nowMs })]), undefined);
  });

  it('names contact once the bake time is over and the server has not answered', () => {
    const contact = { failed: 0, hadContact: true, tries: 0, lastAtMs: nowMs - 1000 };
    assert.equal(wait(bake({ contact })), undefined);
    assert.deepEqual(wait(bake({ contact, observedMs: forMs })), { what: 'contact' });
  });
});

describe('bakeStatus', () => {
  const config = { bundles: [{ name: 'dns', bake: { forMs, restarts: 2 } }], workers: [], together: [] };
  const left = (atMs: number, isObserved = true, more: Partial<Bake> = {}) => {
    const ledger = { bakes: { dns: bake(more) }, workers: {} } as unknown as Ledger;
    const host = { config } as unknown as Parameters<typeof bakeStatus>[0];
    return bakeStatus(host, ledger, { bundle: 'dns', release: plain, nowMs: atMs, isObserved })?.leftMs;
  };

  it('subtracts the time since the agent last wrote what it observed', () => {
    assert.equal(left(nowMs), forMs / 2);
    assert.equal(left(nowMs + 20_000), forMs / 2 - 20_000);
    assert.equal(left(nowMs - 20_000), forMs / 2, 'a clock that was set back');
  });

  it('subtracts nothing before the first observation, because a move may notify workers for minutes', () => {
    const started = { startedAtMs: nowMs, seenAtMs: nowMs, observedMs: 0 };
    assert.equal(left(nowMs + 20_000, true, started), forMs);
  });

  it('subtracts nothing where no agent observes the release', () => {
    assert.equal(left(nowMs + 20_000, false), forMs / 2);
    assert.equal(left(nowMs + 60_000), forMs / 2);
  });
});
