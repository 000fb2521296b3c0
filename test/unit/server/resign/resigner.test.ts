import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { WritError } from '../../../../src/core/errors.js';
import type { OnlineRole } from '../../../../src/core/tuf/tuf-metadata.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import type { ServedRepository, ServedState } from '../../../../src/server/resign/repository-view.js';
import { createResigner, type RefusedFile, type Resigner } from '../../../../src/server/resign/resigner.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

const dayMs = 86_400_000;
const watchEveryMs = 10_000;

/** A repository in memory, signed now: snapshot for 30 days, timestamp for 7. */
function repository(clock: FakeClock): { state: ServedState; reads: number; view: ServedRepository } {
  const signedAtMs = clock.nowMs();
  const fixture = {
    reads: 0,
    state: {
      roles: {
        snapshot: { version: 1, signedAtMs, expiresMs: signedAtMs + 30 * dayMs },
        timestamp: { version: 1, signedAtMs, expiresMs: signedAtMs + 7 * dayMs },
      },
      problems: [],
      pending: [],
      missing: [],
    } as ServedState,
    view: {
      read: () => {
        fixture.reads += 1;
        return fixture.state;
      },
      current: () => fixture.state,
      changed: () => false,
    },
  };
  return fixture;
}

interface Bench {
  readonly clock: FakeClock;
  readonly fixture: ReturnType<typeof repository>;
  readonly resigner: Resigner;
  readonly calls: (readonly OnlineRole[])[];
  readonly results: string[];
  /** Texts of the log. */
  readonly warnings: string[];
  /** What the signer does next time; undefined: it signs. */
  fail: Error | undefined;
  /** What the signer says that it would fail by. */
  obstacle: WritError | undefined;
  /** Files that the signer does not publish. */
  ignored: readonly string[];
}

function bench(): Bench {
  const clock = fakeClock();
  const fixture = repository(clock);
  const calls: (readonly OnlineRole[])[] = [];
  const results: string[] = [];
  const warnings: string[] = [];
  const signer = {
    obstacle: () => result.obstacle,
    resign: async (roles: readonly OnlineRole[], isDueByTime: boolean): Promise<readonly RefusedFile[]> => {
      calls.push(roles);
      await setImmediate();
      if (result.fail !== undefined) throw result.fail;
      const { pending } = fixture.state;
      const left = pending.filter((name) => result.ignored.includes(name));
      const refused = left.map((name) => ({ name, text: `${name} cannot be published` }));
      if (!isDueByTime && left.length === pending.length) return refused;
      const signed = Object.entries(fixture.state.roles).map(([name, role]) => [
        name,
        roles.includes(name as OnlineRole)
          ? {
              version: role.version + 1,
              signedAtMs: clock.nowMs(),
              expiresMs: clock.nowMs() + role.expiresMs - role.signedAtMs,
            }
          : role,
      ]);
      fixture.state = { roles: Object.fromEntries(signed), problems: [], pending: left, missing: [] };
      return refused;
    },
  };
  const resigner = createResigner({
    view: fixture.view,
    signer,
    clock,
    log: { ...silentLog(), warn: (_details: unknown, text = '') => void warnings.push(text) },
    watchEveryMs,
    onResult: (one) => results.push(one),
  });
  const own = { fail: undefined, obstacle: undefined, ignored: [] };
  const result: Bench = { clock, fixture, resigner, calls, results, warnings, ...own };
  return result;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await setImmediate();
}

describe('re-signing loop', () => {
  it('signs nothing before it is started, and nothing that is not due', async () => {
    const one = bench();
    await settle();
    assert.equal(one.fixture.reads, 0);
    one.resigner.start();
    await settle();
    await one.clock.advance(60_000);
    assert.deepEqual(one.calls, []);
    assert.ok(one.fixture.reads > 1);
    await one.resigner.stop();
    assert.equal(one.clock.sleeping(), 0);
  });

  it('signs timestamp and snapshot, each after a quarter of its validity period', async () => {
    const one = bench();
    one.resigner.start();
    await settle();
    one.clock.setWallTime(one.clock.nowMs() + 1.75 * dayMs - watchEveryMs - 1);
    await one.clock.advance(watchEveryMs);
    assert.deepEqual(one.calls, []);
    await one.clock.advance(watchEveryMs);
    await settle();
    assert.deepEqual(one.calls, [['timestamp']]);
    one.clock.setWallTime(one.clock.nowMs() + 5.75 * dayMs);
    await one.clock.advance(watchEveryMs);
    await settle();
    assert.deepEqual(one.calls, [['timestamp'], ['snapshot', 'timestamp']]);
    assert.deepEqual(one.results, ['success', 'success']);
    assert.equal(one.resigner.status().failure, undefined);
    assert.ok((one.resigner.status().lastSuccessMs ?? 0) > 0);
    await one.resigner.stop();
  });

  it('reports an obstacle before a signature is needed, and until it is removed', async () => {
    const one = bench();
    one.obstacle = new WritError('DISK_DENIED', 'this user cannot write');
    one.resigner.start();
    await settle();
    const obstacle = { code: 'DISK_DENIED', message: 'this user cannot write' };
    assert.deepEqual(one.resigner.status(), { obstacle });
    assert.deepEqual([one.calls, one.results], [[], []]);
    one.obstacle = undefined;
    await one.clock.advance(watchEveryMs);
    await settle();
    assert.deepEqual(one.resigner.status(), {});
    await one.resigner.stop();
  });

  it('calls it a failure, and no obstacle any more, once it failed by it', async () => {
    const one = bench();
    one.fail = new WritError('DISK_DENIED', 'denied');
    one.obstacle = one.fail as WritError;
    one.resigner.start();
    await settle();
    one.clock.setWallTime(one.clock.nowMs() + 2 * dayMs);
    await one.clock.advance(watchEveryMs);
    await settle();
    const { failure, obstacle } = one.resigner.status();
    assert.deepEqual([failure?.code, failure?.count, obstacle], ['DISK_DENIED', 1, undefined]);
    await one.resigner.stop();
  });

  it('publishes a waiting release when it is woken', async () => {
    const one = bench();
    one.resigner.start();
    await settle();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.resigner.wake();
    await settle();
    assert.deepEqual(one.calls, [['snapshot', 'timestamp']]);
    await one.resigner.stop();
  });

  it('publishes a waiting release without a request', async () => {
    const one = bench();
    one.resigner.start();
    await settle();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    await one.clock.advance(watchEveryMs);
    await settle();
    assert.equal(one.calls.length, 1);
    await one.resigner.stop();
  });

  it('survives failures, tries again with growing waits, and forgets them after a success', async () => {
    const one = bench();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.fail = new WritError('KEY_UNREADABLE', 'no such key');
    one.resigner.start();
    await settle();
    assert.equal(one.resigner.status().failure?.code, 'KEY_UNREADABLE');
    assert.equal(one.resigner.status().failure?.count, 1);
    // A request that finds the directory changed must not turn into one signing try a request.
    one.resigner.wake();
    await settle();
    assert.equal(one.calls.length, 1);
    await one.clock.advance(5000);
    await settle();
    assert.equal(one.calls.length, 2);
    await one.clock.advance(9999);
    await settle();
    assert.equal(one.calls.length, 2);
    one.fail = undefined;
    await one.clock.advance(1);
    await settle();
    assert.equal(one.calls.length, 3);
    assert.equal(one.resigner.status().failure, undefined);
    assert.deepEqual(one.results, ['failure', 'failure', 'success']);
    await one.resigner.stop();
  });

  it('ends the wait after a failure when another file waits', async () => {
    const one = bench();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.fail = new WritError('REPOSITORY_INVALID', '2.targets.json does not verify');
    one.resigner.start();
    await settle();
    await one.clock.advance(5000);
    await settle();
    assert.equal(one.calls.length, 2);
    one.fail = undefined;
    one.fixture.state = { ...one.fixture.state, pending: ['3.targets.json'] };
    one.resigner.wake();
    await settle();
    assert.deepEqual([one.calls.length, one.resigner.status().failure], [3, undefined]);
    await one.resigner.stop();
  });

  it('keeps trying when the wall clock is set back', async () => {
    const one = bench();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.fail = new Error('of no kind');
    one.resigner.start();
    await settle();
    assert.equal(one.resigner.status().failure?.code, 'INTERNAL');
    one.clock.setWallTime(0);
    await one.clock.advance(5000);
    await settle();
    assert.equal(one.calls.length, 2);
    await one.resigner.stop();
  });

  it('counts it as a failure when a signer leaves something due, and does not ask at every tick', async () => {
    const one = bench();
    const waiting = { ...one.fixture.state, pending: ['2.targets.json'] };
    Object.defineProperty(one.fixture, 'state', { get: () => waiting, set: () => undefined });
    one.resigner.start();
    await settle();
    assert.equal(one.resigner.status().failure?.code, 'REPOSITORY_INVALID');
    await one.clock.advance(4999);
    await settle();
    assert.equal(one.calls.length, 1);
    await one.resigner.stop();
  });

  it('lets another writer finish, and signs only what that one left due', async () => {
    const one = bench();
    const waiting = { ...one.fixture.state, pending: ['2.targets.json'] };
    const done = one.fixture.state;
    one.fixture.state = waiting;
    one.fail = new WritError('REPOSITORY_LOCKED', 'a publish is at work');
    one.resigner.start();
    await settle();
    await one.clock.advance(1000);
    await settle();
    assert.equal(one.calls.length, 2);
    assert.deepEqual([one.resigner.status().failure, one.results], [undefined, []]);
    one.fixture.state = done;
    await one.clock.advance(1000);
    await settle();
    assert.equal(one.calls.length, 2);
    assert.deepEqual(one.resigner.status(), {});
    await one.resigner.stop();
  });

  it('calls it a failure when the other writer never ends', async () => {
    const one = bench();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.fail = new WritError('REPOSITORY_LOCKED', 'a publish hangs');
    one.resigner.start();
    await settle();
    for (let second = 0; second < 30; second += 1) {
      assert.equal(one.resigner.status().failure, undefined);
      await one.clock.advance(1000);
      await settle();
    }
    assert.equal(one.resigner.status().failure?.code, 'REPOSITORY_LOCKED');
    await one.resigner.stop();
  });

  it('lets a signing end before it stops', async () => {
    const one = bench();
    one.fixture.state = { ...one.fixture.state, pending: ['2.targets.json'] };
    one.resigner.start();
    await one.resigner.stop();
    assert.deepEqual(one.results, ['success']);
  });
});

describe('listed files of teams that are missing', () => {
  it('are logged once until others are missing', async () => {
    const one = bench();
    const miss = async (...missing: string[]): Promise<number> => {
      one.fixture.state = { ...one.fixture.state, missing };
      await one.clock.advance(watchEveryMs);
      await settle();
      return one.warnings.length;
    };
    one.resigner.start();
    await settle();
    assert.deepEqual([await miss('1.web.json'), await miss('1.web.json')], [1, 1]);
    assert.deepEqual([await miss('1.web.json', '2.dns.json'), await miss()], [2, 2]);
    assert.equal(await miss('1.web.json'), 3);
    assert.match(
      one.warnings[0] ?? '',
      /^the snapshot lists 1\.web\.json, which the directory does not have/,
    );
    await one.resigner.stop();
  });
});

describe('a newer file of a team that the signer does not publish', () => {
  const file = '2.dns-team.json';
  const namesOf = ({ resigner }: Bench) => resigner.status().setAside?.files.map(({ name }) => name);

  async function withIgnoredFile(): Promise<Bench> {
    const one = bench();
    one.ignored = [file];
    one.fixture.state = { ...one.fixture.state, pending: [file] };
    one.resigner.start();
    await settle();
    return one;
  }

  it('is set aside without a failure, and a publish by another role is signed at once', async () => {
    const one = await withIgnoredFile();
    assert.deepEqual([namesOf(one), one.results], [[file], []]);
    one.fixture.state = { ...one.fixture.state, pending: [file, '2.targets.json'] };
    await one.clock.advance(watchEveryMs);
    await settle();
    assert.deepEqual([namesOf(one), one.results], [[file], ['success']]);
    assert.deepEqual([one.resigner.status().failure, one.fixture.state.pending], [undefined, [file]]);
    await one.resigner.stop();
  });

  it('is tried again with growing waits, because its archive may have arrived since', async () => {
    const one = await withIgnoredFile();
    await one.clock.advance(watchEveryMs);
    await settle();
    await one.clock.advance(watchEveryMs - 1);
    await settle();
    assert.equal(one.calls.length, 2);
    one.ignored = [];
    await one.clock.advance(1);
    await settle();
    const { setAside, failure } = one.resigner.status();
    assert.deepEqual([setAside, failure, one.results], [undefined, undefined, ['success']]);
    await one.resigner.stop();
  });

  it('is tried again once other targets are published', async () => {
    const one = await withIgnoredFile();
    one.ignored = [];
    const { timestamp } = one.fixture.state.roles;
    assert.ok(timestamp !== undefined);
    const roles = { ...one.fixture.state.roles, targets: { ...timestamp, version: 3 } };
    one.fixture.state = { ...one.fixture.state, roles };
    one.resigner.wake();
    await settle();
    assert.deepEqual([one.resigner.status().setAside, one.results], [undefined, ['success']]);
    await one.resigner.stop();
  });

  it('is forgotten once a newer version of the role is published', async () => {
    const one = await withIgnoredFile();
    one.fixture.state = { ...one.fixture.state, pending: [] };
    one.resigner.wake();
    await settle();
    assert.equal(one.resigner.status().setAside, undefined);
    await one.resigner.stop();
  });
});
