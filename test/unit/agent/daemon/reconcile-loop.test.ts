import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createSettler,
  identityGapMs,
  runSettleLoop,
  type Turn,
} from '../../../../src/agent/daemon/reconcile-loop.js';
import { readHistory } from '../../../../src/agent/job/history.js';
import { createAnswerGrace } from '../../../../src/workers/contract/liveness.js';
import { inodeState } from '../../../kit/assert/directory-state.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import {
  confirms,
  refuses,
  type ScriptedDriver,
  scriptedDriver,
  unreachable,
} from '../../../kit/workers/scripted-driver.js';

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** A turn, so much later than the one before. */
  readonly turn: (afterMs: number) => Promise<Turn>;
}

async function world(
  workers: Parameters<typeof scriptedDriver>[0],
  settler = createSettler(),
): Promise<World> {
  const driver = scriptedDriver(workers);
  const test = testHost({ groups: { app: { driver } } });
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  await test.pull();
  driver.notified.length = 0;
  driver.reads = 0;
  const { signal } = new AbortController();
  const turn = async (afterMs: number): Promise<Turn> => {
    await test.clock.advance(afterMs);
    return settler.turn(test.host, { signal, loader: undefined });
  };
  return { test, driver, turn };
}

describe('a turn between the polls', () => {
  it('tells a worker again later and later, and says when there is news', async () => {
    const { test, driver, turn } = await world({ a: confirms, b: unreachable });
    using _ = test;
    const news: string[] = [];
    for (let at = 0; at < 12; at++) news.push((await turn(5000)).news);
    assert.deepEqual(driver.notified, ['b 1', 'b 1', 'b 1'], 'after 5, 15 and 35 seconds');
    assert.equal(news.filter((one) => one === 'yes').length, 3);
    assert.equal((await turn(0)).news, 'no');
  });

  it('touches nothing on the disk while nothing is new', async () => {
    const { test, driver, turn } = await world({ a: confirms, b: confirms });
    using _ = test;
    await turn(5000);
    const before = inodeState(test.host.paths.state);
    for (let at = 0; at < 3; at++) assert.deepEqual(await turn(5000), { news: 'no', loader: undefined });
    assert.deepEqual(inodeState(test.host.paths.state), before);
    assert.deepEqual([driver.notified, driver.reads], [[], 4]);
  });

  it('sees who appears, and tells it in the same turn', async () => {
    const { test, driver, turn } = await world({});
    using _ = test;
    driver.workers.set('late', confirms);
    assert.equal((await turn(5000)).news, 'yes');
    assert.deepEqual(driver.notified, ['late 1']);
  });

  it('writes into the history who was told in the end, and under which id; not every try', async () => {
    const { test, driver, turn } = await world({ a: unreachable });
    using _ = test;
    const entries = () => readHistory(test.host.paths, { limit: 10 });
    const before = entries().length;
    await turn(5000);
    assert.equal(entries().length, before);
    driver.workers.set('a', confirms);
    await turn(10_000);
    const [entry] = entries();
    assert.deepEqual([entry?.result.trigger, entry?.result.workers[0]?.state], ['pending', 'confirmed']);
    assert.equal(entry?.result.workers[0]?.notificationId, `${entry?.result.cycle}.1`);
    assert.equal(test.host.ledger.read().workers['app/a']?.notificationId, `${entry?.result.cycle}.1`);
  });

  it('hands on a refusal that comes late', async () => {
    const refusals: string[] = [];
    const settler = createSettler({
      onRefused: async (host, error) => void refusals.push(`${host.config.host.id} ${error.code}`),
    });
    const { test, driver, turn } = await world({ a: unreachable }, settler);
    using _ = test;
    driver.workers.set('a', refuses('no'));
    await turn(5000);
    assert.deepEqual(refusals, ['test WORKER_REFUSED']);
  });

  it('reads a set that takes long only for a small part of the time', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    const { members } = driver;
    driver.members = async () => {
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 9; at++) await turn(5000);
    assert.equal(driver.reads, 3, 'at once, and then every twenty seconds');
  });

  it('confirms who is back within two turns, though its driver waits a while for who is away', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    const grace = createAnswerGrace(test.clock, 3000);
    let isDead = true;
    driver.liveness = (worker) => grace.within(worker, async () => (isDead ? 'dead' : 'alive'));
    await turn(60_000);
    await turn(5000);
    const entry = () => test.host.ledger.read().workers['app/a'];
    assert.notEqual(entry()?.goneAtMs, undefined);
    isDead = false;
    await turn(5000);
    assert.deepEqual([entry()?.goneAtMs, entry()?.state], [undefined, 'confirmed']);
    assert.deepEqual(driver.notified, ['a 1']);
  });

  it('asks once a minute whether those live who answered, and each time whether one is back', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    let isDead = false;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return isDead ? 'dead' : 'alive';
    };
    const goneAtMs = (): number | undefined => test.host.ledger.read().workers['app/a']?.goneAtMs;
    for (let at = 0; at < 6; at++) await turn(5000);
    assert.equal(asked, 1);
    isDead = true;
    for (let at = 0; at < 6; at++) await turn(5000);
    assert.equal(goneAtMs(), undefined);
    assert.equal((await turn(5000)).news, 'yes');
    assert.equal(goneAtMs(), test.clock.nowMs());
    isDead = false;
    await turn(5000);
    assert.deepEqual([driver.notified, goneAtMs()], [['a 1'], undefined]);
  });

  it('looks as often as it is given: for the dead, and for a set that takes long', async () => {
    const intervals = { turnEveryMs: 1000, doubtEveryMs: 1000, maxReadGapMs: 2000 };
    const { test, driver, turn } = await world({ a: confirms }, createSettler({ intervals }));
    using _ = test;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return 'alive';
    };
    for (let at = 0; at < 4; at++) await turn(1000);
    assert.deepEqual([asked, driver.reads], [4, 4]);
    const { members } = driver;
    driver.members = async () => {
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 4; at++) await turn(1000);
    assert.equal(driver.reads, 6, 'a second to read and two to wait, and not twenty');
  });

  it('looks whether the answered live every 2 s in a bake, and every minute without one', async () => {
    let isBaking = false;
    const settler = createSettler({ isBaking: () => isBaking });
    const { test, driver, turn } = await world({ a: confirms }, settler);
    using _ = test;
    let asked = 0;
    driver.liveness = async () => {
      asked += 1;
      return 'alive';
    };
    for (let at = 0; at < 12; at++) await turn(5000);
    assert.equal(asked, 1);
    isBaking = true;
    for (let at = 0; at < 5; at++) await turn(2000);
    assert.equal(asked, 6);
    assert.deepEqual(
      [true, false].map((one) => identityGapMs({ isBaking: one })),
      [2000, 60_000],
    );
  });

  it('lets no set that takes long keep others waiting', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    const { members } = driver;
    const other = scriptedDriver({ b: confirms });
    const [group] = test.host.groups;
    const groups = [group!, { config: { ...group!.config, name: 'other' }, driver: other }];
    Object.assign(test.host, { groups });
    driver.members = async () => {
      // The clock jumps at once: the other set is read by then.
      await new Promise((resolve) => setImmediate(resolve));
      await test.clock.sleep(1000);
      return members();
    };
    for (let at = 0; at < 9; at++) await turn(5000);
    assert.equal(driver.reads, 3);
    assert.ok(other.reads >= 9);
  });

  it('asks later and later for a set that nobody can read', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    driver.unread = 'EACCES';
    for (let at = 0; at < 12; at++) await turn(5000);
    assert.equal(driver.reads, 4, 'after 5, 10, 20 and 40 seconds');
    driver.unread = undefined;
    for (let at = 0; at < 12; at++) await turn(5000);
    assert.equal(test.host.ledger.read().unreadSets, undefined);
  });

  it('never ends with an exception, whatever a driver does', async () => {
    const { test, driver, turn } = await world({ a: confirms });
    using _ = test;
    driver.members = async () => {
      throw new TypeError('a bug');
    };
    assert.equal((await turn(5000)).news, 'no');
  });
});

describe('the loop of turns', () => {
  it('takes one every five seconds until it is stopped, with what else is due around it', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    const said: string[] = [];
    const note = (text: string) => async (): Promise<void> => void said.push(text);
    const loop = runSettleLoop({
      clock,
      stop: stop.signal,
      before: note('before'),
      turn: note('turn'),
      after: note('after'),
    });
    await clock.advance(0);
    await clock.advance(5000);
    await clock.advance(4999);
    assert.deepEqual(said, ['before', 'turn', 'after', 'before']);
    stop.abort();
    await loop;
    assert.equal(said.length, 4);
  });

  it('takes one as often as it is given', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    let turns = 0;
    const nothing = async (): Promise<void> => undefined;
    const turn = async (): Promise<void> => {
      turns += 1;
    };
    const loop = runSettleLoop({
      clock,
      stop: stop.signal,
      before: nothing,
      turn,
      after: nothing,
      turnEveryMs: 1000,
    });
    await clock.advance(0);
    await clock.advance(1000);
    await clock.advance(1000);
    assert.equal(turns, 2);
    stop.abort();
    await loop;
  });
});
