// Kills a start around each labelled operation of its recovery, then starts again. The next start must reach the result of an
// undisturbed start, one intact generation is active at each moment, and no file is left over. A run provides the operations,
// so a new one gets its cases.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { activeGenerationNumber, pointCurrentAt } from '../../../src/agent/generations/generations.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { CrashCount } from '../../../src/agent/state/crash-rules.js';
import type { Host } from '../../../src/agent/state/host.js';
import { writeJournal } from '../../../src/agent/state/journal.js';
import type { Journal } from '../../../src/agent/state/recovery-rules.js';
import type { FileOperation } from '../../../src/platform/disk/durable-fs.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { requireSwept } from '../../kit/assert/host-invariant.js';
import { sampled } from '../../kit/assert/sample.js';
import { type OperationTrap, operationTrap } from '../../kit/disk/operation-trap.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const signal = new AbortController().signal;
const files = (version: number) => ({ 'a.yaml': `version: ${version}\n`, 'b.yaml': `version: ${version}\n` });

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
}

interface Wreck {
  readonly name: string;
  /** Writes what the crash left, on a host with generations 1 and 2 and the link at 2. */
  readonly leave: (world: World) => void;
  /** Generations that may be active after an undisturbed start, and after a killed one. */
  readonly ends: readonly number[];
  /** Earlier crashes of the candidate. */
  readonly crashes?: number;
  /** Codes that the history must contain at the end, whatever was killed. */
  readonly reportedCodes?: readonly string[];
}

function journal({ test }: World, change: Partial<Journal>): void {
  const { paths, durable } = test.host;
  const base = { writ: 1, cycle: 'c-0', from: 1, to: 2, startedAtMs: 0, kind: 'update' } as const;
  writeJournal(paths, durable, { ...base, direction: 'forward', ...change });
}

function link({ test }: World, generation: number): void {
  pointCurrentAt(test.host.paths, test.host.durable, { generation, cycle: 'c-0' });
  // The swap was not committed: the ledger must know the link, otherwise a manual change of it counts as damage.
  const { ledger } = test.host;
  setLedger(ledger, { lastKnownGood: generation, settled: generation });
}

function damageTree({ test }: World, generation: number): void {
  const trees = join(test.host.paths.bundles, 'access');
  const [tree] = fs.readdirSync(trees).filter((name) => name.endsWith(`.${generation}`));
  fs.rmSync(join(trees, tree!, 'b.yaml'));
}

const wrecks: readonly Wreck[] = [
  {
    name: 'a swap after the link was changed',
    leave: (world) => journal(world, {}),
    // After a kill during the swap, the next start restores generation 1.
    ends: [2, 1],
  },
  {
    name: 'a swap before the link was changed',
    leave: (world) => {
      link(world, 1);
      journal(world, {});
    },
    ends: [1],
  },
  { name: 'a second crash', leave: (world) => journal(world, {}), ends: [1], crashes: 1 },
  { name: 'a third crash', leave: (world) => journal(world, {}), ends: [1], crashes: 2 },
  { name: 'a fourth crash', leave: (world) => journal(world, { direction: 'back' }), ends: [1], crashes: 3 },
  {
    name: 'a restore that had reached the link',
    leave: (world) => {
      link(world, 1);
      journal(world, { direction: 'back' });
    },
    ends: [1],
  },
  {
    name: 'a swap that a worker refuses',
    leave: (world) => {
      journal(world, {});
      world.driver.workers.set('a', (generation) =>
        generation === 2 ? refuses('no')() : confirms(generation),
      );
    },
    ends: [1],
  },
  {
    name: 'a swap to a generation that is not intact',
    leave: (world) => {
      journal(world, {});
      damageTree(world, 2);
    },
    ends: [1],
  },
  {
    name: 'a commit that could not clear the journal',
    leave: (world) => {
      journal(world, {});
      const { ledger } = world.test.host;
      setLedger(ledger, { committedCycle: 'c-0' });
    },
    ends: [2],
  },
  {
    name: 'a damaged journal',
    leave: ({ test }) => fs.writeFileSync(test.host.paths.journal, '{'),
    ends: [2],
    reportedCodes: ['STATE_REBUILT'],
  },
  {
    name: 'a damaged ledger',
    leave: ({ test }) => fs.writeFileSync(test.host.paths.ledger, '{'),
    ends: [2],
    reportedCodes: ['STATE_REBUILT'],
  },
  {
    name: 'a lost ledger in the middle of a swap',
    leave: (world) => {
      journal(world, {});
      fs.rmSync(world.test.host.paths.ledger);
    },
    ends: [2, 1],
    reportedCodes: ['STATE_REBUILT'],
  },
  {
    name: 'damaged refusals',
    leave: ({ test }) => fs.writeFileSync(test.host.paths.rejected, '{'),
    ends: [2],
    reportedCodes: ['STATE_REBUILT'],
  },
];

/** A copy of the wreck for each start, made once, because there are hundreds of starts. */
interface Wreckage extends Disposable {
  readonly world: World;
  restore(): void;
}

async function wreckageOf(wreck: Wreck): Promise<Wreckage> {
  const world = await worldWith(wreck);
  const { directory, host } = world.test;
  const places = [host.paths.state, host.paths.run];
  const kept = join(directory, 'kept');
  fs.mkdirSync(kept);
  execFileSync('cp', ['-a', ...places, kept]);
  return {
    world,
    restore: () => {
      for (const path of places) fs.rmSync(path, { recursive: true });
      execFileSync('cp', ['-a', ...places.map((path) => join(kept, basename(path))), directory]);
    },
    [Symbol.dispose]: () => world.test[Symbol.dispose](),
  };
}

async function worldWith(wreck: Wreck): Promise<World> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  for (const serial of [1, 2]) {
    await test.publish('access', files(serial), { serial });
    await test.pull();
  }
  if (wreck.crashes !== undefined) {
    const access = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
    const crashes: CrashCount = { manifestDigests: { access }, count: wreck.crashes };
    setLedger(test.host.ledger, { crashes });
  }
  wreck.leave({ test, driver });
  return { test, driver };
}

const start = (host: Host): ReturnType<typeof startHost> => startHost(host, { cycle: 'c-ab', signal });

/**
 * Finds kills with distinct results. Between two operations only notifications of workers happen; without them a kill
 * after an operation equals the kill before the next one.
 * @returns the kills to try
 */
async function killsOf({ world, restore }: Wreckage, wreck: Wreck): Promise<Kill[]> {
  const trap = operationTrap();
  const notified: number[] = [];
  const observer = {
    ...trap,
    before: (operation: FileOperation) => {
      notified.push(world.driver.notified.length);
      trap.before?.(operation);
    },
  };
  await start(world.test.reopen({ observer }));
  judge(world, wreck.ends.slice(0, 1), wreck);
  restore();
  return notified.flatMap((count, index): Kill[] => [
    { index, when: 'before' },
    ...(notified[index + 1] === count ? [] : [{ index, when: 'after' } as const]),
  ]);
}

async function startKilled({ test }: World, trap: OperationTrap): Promise<void> {
  try {
    await start(test.reopen({ observer: trap }));
  } catch (error) {
    if (!trap.isSprung()) throw error;
  }
  requireIntactPolicy(test);
}

function requireIntactPolicy(test: TestHost): void {
  // A tree that the wreck has damaged lacks this file.
  const isDamaged = !fs.existsSync(join(test.host.paths.current, 'access/b.yaml'));
  if (!isDamaged) assert.equal(test.read('access/a.yaml'), test.read('access/b.yaml'));
}

function judge({ test }: World, ends: readonly number[], { reportedCodes = [] }: Wreck): void {
  const { paths } = test.host;
  assert.ok(ends.includes(activeGenerationNumber(paths)!), `generation ${activeGenerationNumber(paths)}`);
  assert.equal(test.read('access/a.yaml'), test.read('access/b.yaml'));
  requireSwept(paths);
  const codes = readHistory(paths, { limit: 1000 }).flatMap((one) =>
    [...one.result.problems, ...one.result.warnings].map(({ code }) => code),
  );
  for (const code of reportedCodes) assert.ok(codes.includes(code as never), `${code} is not in the history`);
}

interface Kill {
  readonly index: number;
  readonly when: 'before' | 'after';
}

async function requireRecovery(world: World, wreck: Wreck, { index, when }: Kill): Promise<void> {
  const trap = operationTrap();
  trap.arm(index, when);
  await startKilled(world, trap);
  assert.ok(trap.isSprung(), `operation ${index} was not reached`);
  const host = world.test.reopen();
  await start(host);
  judge(world, wreck.ends, wreck);
  const { exitCode, problems } = await cycleOn(host);
  // Success, or the report of a refused or blocked release.
  assert.ok([0, 3, 6].includes(exitCode), `${when} ${trap.seen.at(-1)}: ${JSON.stringify(problems)}`);
}

describe('a recovery that is killed', () => {
  for (const wreck of wrecks) {
    it(`at any operation ends as without the kill: ${wreck.name}`, async (context) => {
      using wreckage = await wreckageOf(wreck);
      const kills = await killsOf(wreckage, wreck);
      assert.ok(kills.length > 0);
      const chosen = sampled(kills);
      for (const kill of chosen) {
        await requireRecovery(wreckage.world, wreck, kill);
        wreckage.restore();
      }
      context.diagnostic(`${chosen.length} kills`);
    });
  }

  it('at each start in turn still ends, and notifies workers a limited number of times', async () => {
    const wreck = wrecks[0]!;
    const world = await worldWith(wreck);
    using _ = world.test;
    world.driver.notified.length = 0;
    // Each start dies one operation later than the previous one, until one ends.
    let kills = 0;
    for (let hasDied = true; hasDied && kills < 60; kills += hasDied ? 1 : 0) {
      const trap = operationTrap();
      trap.arm(kills, kills % 2 === 0 ? 'before' : 'after');
      await startKilled(world, trap);
      hasDied = trap.isSprung();
    }
    assert.ok(kills > 15 && kills < 60, `${kills} kills`);
    await start(world.test.reopen());
    judge(world, [1, 2], wreck);
    assert.ok(world.driver.notified.length <= 3, world.driver.notified.join(', '));
  });
});
