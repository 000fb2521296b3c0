// Workers that connect to the agent: the reconnections within a bake time that show the exit of a process. The identities are those
// of the real driver over its socket, the bake time is virtual.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/platform/time/clock.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { membersAre, type Setup, setUp } from '../../kit/workers/native-group.js';
import { joinAs, type RawWorker } from '../../kit/workers/raw-worker.js';

const second = 1000;
/** Higher than any pid of Linux, like the pid of a container that this host cannot see. */
const unknownPid = 2 ** 31;

/** A group `app` with a worker `a` that connects to agents, which start and stop. */
interface NativeWorld extends AsyncDisposable {
  readonly baking: BakingHost;
  restartAgent(): Promise<void>;
  /** Connects the worker, or connects it again. */
  connect(pid: number): Promise<void>;
  /** A process that can be a worker; it ends with the scene. */
  startProcess(): number;
  ends(): number | undefined;
}

function nativeWorld(): NativeWorld {
  const dir = tempDir();
  const driver = supervisedDriver(['a'], 'unrecorded');
  const processes: ChildProcess[] = [];
  let agent: Setup | undefined;
  let worker: RawWorker | undefined;
  driver.runIdentity = async (name) => agent?.driver.runIdentity?.(name);
  const baking = bakingHost(driver);
  const restartAgent = async (): Promise<void> => {
    await agent?.[Symbol.asyncDispose]();
    await worker?.closed();
    await baking.test.clock.advance(1);
    // Pauses of the virtual clock end at once, so that each hello would be late.
    agent = await setUp(dir, { clock: { ...systemClock, nowMs: () => baking.test.clock.nowMs() } });
  };
  return {
    baking,
    restartAgent,
    connect: async (pid) => {
      if (agent === undefined) await restartAgent();
      const { driver: real, path } = agent as Setup;
      worker?.end();
      await membersAre(real, []);
      worker = await joinAs(path, 'a', pid);
      await membersAre(real, ['a']);
      driver.processes.set('a', (await real.identity?.('a')) ?? '');
    },
    startProcess: () => {
      const child = spawn('sleep', ['600'], { stdio: 'ignore' });
      processes.push(child);
      return child.pid ?? 0;
    },
    ends: () => baking.test.host.ledger.read().runs?.['app/a']?.ends.length,
    [Symbol.asyncDispose]: async () => {
      worker?.end();
      await agent?.[Symbol.asyncDispose]();
      for (const child of processes) {
        const ended = once(child, 'close');
        child.kill('SIGKILL');
        await ended;
      }
      baking[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

/** Settles release 1, and activates release 2. */
async function bakeSecond({ baking }: NativeWorld): Promise<void> {
  await baking.take(1);
  await baking.pass(bakeMs + 10 * second);
  await baking.take(2);
  await baking.pass(4 * second);
}

describe('a worker that connects to the agent', () => {
  for (const [kind, restarts] of [
    ['known', 5],
    ['not known', 8],
  ] as const) {
    it(
      `keeps its release when the agent restarts ${restarts} times and its process is ${kind}`,
      longCase,
      async () => {
        await using world = nativeWorld();
        const { baking } = world;
        const pid = kind === 'known' ? world.startProcess() : unknownPid;
        await world.connect(pid);
        await bakeSecond(world);
        for (let restart = 0; restart < restarts; restart += 1) {
          await world.restartAgent();
          await baking.pass(2 * second);
          await world.connect(pid);
          await baking.pass(4 * second);
        }
        assert.deepEqual([world.ends(), baking.active()], [0, '2']);
        await baking.pass(bakeMs);
        const { settledReleases } = baking.test.host.ledger.read();
        assert.deepEqual([settledReleases?.['access']?.[0]?.serial, baking.restores.length], [2, 0]);
      },
    );
  }

  it('does not count as dead when the same process connects again to the same agent', async () => {
    await using world = nativeWorld();
    const pid = world.startProcess();
    await world.connect(pid);
    await bakeSecond(world);
    for (let times = 0; times < 6; times += 1) {
      await world.connect(pid);
      await world.baking.pass(4 * second);
    }
    assert.deepEqual([world.ends(), world.baking.active()], [0, '2']);
  });

  it(
    'causes a rollback when its process is replaced repeatedly, also between two agents',
    longCase,
    async () => {
      await using world = nativeWorld();
      await world.connect(world.startProcess());
      await bakeSecond(world);
      await world.restartAgent();
      await world.connect(world.startProcess());
      await world.baking.pass(4 * second);
      assert.equal(world.ends(), 1);
      for (let times = 0; times < 4; times += 1) {
        await world.connect(world.startProcess());
        await world.baking.pass(4 * second);
      }
      assert.deepEqual([world.baking.active(), world.baking.restores.length], ['1', 1]);
    },
  );

  it('causes a rollback when its process is replaced four times, each after its notification', async () => {
    const driver = Object.assign(supervisedDriver(['a'], 'unrecorded'), { mayComeForMs: () => 0 });
    using baking = bakingHost(driver);
    await baking.take(1);
    await baking.live(bakeMs + 12 * second);
    await baking.take(2);
    for (let times = 0; times < 4; times += 1) {
      assert.equal(baking.active(), '2');
      await baking.live(80 * second);
      driver.replace('a', 'unrecorded');
    }
    await baking.live(4 * second);
    assert.deepEqual([baking.active(), baking.restores.length], ['1', 1]);
  });

  it('causes a rollback when it reconnects repeatedly and its process is unknown', longCase, async () => {
    await using world = nativeWorld();
    await world.connect(unknownPid);
    await bakeSecond(world);
    for (let times = 0; times < 5; times += 1) {
      await world.connect(unknownPid);
      await world.baking.pass(4 * second);
    }
    assert.deepEqual([world.baking.active(), world.baking.restores.length], ['1', 1]);
  });
});
