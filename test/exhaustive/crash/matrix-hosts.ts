// Prepares the hosts of the crash matrix: their files, published releases, damage, and the expected results. Owns the state
// before a cycle; matrix-cycles.ts owns the cycles.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { signMetadata } from '../../../src/publisher/keys/signer.js';
import { withdrawRelease } from '../../../src/publisher/release/withdraw.js';
import { readValidityPeriods, timestampContent } from '../../../src/publisher/repository/metadata-content.js';
import { layoutOf } from '../../../src/publisher/repository/repository-layout.js';
import { readRepositoryState } from '../../../src/publisher/repository/repository-state.js';
import { type OnlineSigners, openOnlineSigners } from '../../../src/publisher/signing/online-signing.js';
import { noPolicy } from '../../kit/assert/host-invariant.js';
import { noise } from '../../kit/delta/difference-bench.js';
import { keysAt } from '../../kit/repository/ceremony.js';
import { delegateTo, makeTeam } from '../../kit/repository/delegated-repository.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';
import { type Expectation, files, policyOf, type ReplayWorld } from '../replay/replay-cycles.js';

export interface MatrixExpectation extends Expectation {
  /** Further policies that may be active after a fault: independent bundles allow one new and one old release. */
  readonly between?: readonly string[];
}

const refusedOutcomes = ['rejected', 'rolled-back'];

async function publishBoth({ repository }: ReplayWorld, version: number): Promise<void> {
  await repository.publish(files(version));
  await repository.publish(files(version), { bundle: 'access' });
}

export async function prepareIndependent(world: ReplayWorld): Promise<MatrixExpectation> {
  world.configure({ bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
  await publishBoth(world, 1);
  await world.pull();
  await publishBoth(world, 2);
  return {
    policies: {
      old: policyOf({ 'dns-edge': 1, access: 1 }),
      first: policyOf({ 'dns-edge': 2, access: 1 }),
      second: policyOf({ 'dns-edge': 1, access: 2 }),
      new: policyOf({ 'dns-edge': 2, access: 2 }),
    },
    from: 'old',
    to: 'new',
    between: ['first', 'second'],
    ends: () => 'new',
  };
}

const oldAndNew = { old: policyOf({ 'dns-edge': 1 }), new: policyOf({ 'dns-edge': 2 }) };
const fromOldToNew = { policies: oldAndNew, from: 'old', to: 'new', ends: () => 'new' } as const;

/** A host with every configured feature that changes the disk, and a full history file. */
export async function prepareEquipped(world: ReplayWorld): Promise<MatrixExpectation> {
  const group = process.getgid?.() ?? 0;
  world.configure({
    bundles: [{ name: 'dns-edge', group, checks: [{ name: 'yes', run: ['true'] }] }],
    workers: [
      {
        ...native,
        canary: { start: ['sleep', '60'], probe: ['true'] },
        load: { run: ['true'] },
        reset: { ...native.reset, socketGroup: group },
      },
    ],
  });
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  await leaveSocket(world);
  writeFileSync(pathsOf(world).history, `${'x'.repeat(9_999_990)}\n`);
  return fromOldToNew;
}

/** Leaves a socket as a killed process does: the file exists and no process listens. */
async function leaveSocket({ dir }: ReplayWorld): Promise<void> {
  const path = join(realpathSync(dir.path), 'run', 'workers', 'resolver.sock');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  // A closing server removes only the name that it has created.
  linkSync(path, `${path}.kept`);
  await new Promise((resolve) => server.close(resolve));
  renameSync(`${path}.kept`, path);
}

export async function prepareDelegated(world: ReplayWorld): Promise<MatrixExpectation> {
  const { repository, dir } = world;
  await repository.publish(files(1));
  await world.pull();
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team, { shouldHandOver: true });
  await repository.publish(files(2), { keys: team.keys });
  await repository.refresh();
  return fromOldToNew;
}

/** The host has a record of the release already; the release comes again under a new serial, which replaces it. */
export async function prepareReturn(world: ReplayWorld): Promise<MatrixExpectation> {
  const { repository } = world;
  for (const version of [2, 1]) {
    await repository.publish(files(version));
    await world.pull();
  }
  const withdrawal = { bundle: 'dns-edge', serials: [2], reason: '' };
  await withdrawRelease(withdrawal, changeOptions(repository));
  return fromOldToNew;
}

export async function prepareRefused(world: ReplayWorld): Promise<MatrixExpectation> {
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  const policies = oldAndNew;
  return {
    policies,
    from: 'old',
    to: 'old',
    between: ['new'],
    ends: () => 'old',
    succeeds: refusedOutcomes,
  };
}

/** Its worker refuses the first release that it ever sees. */
export async function prepareRefusedAtFirst({ repository }: ReplayWorld): Promise<MatrixExpectation> {
  await repository.publish(files(2));
  return {
    policies: { new: policyOf({ 'dns-edge': 2 }) },
    from: noPolicy,
    to: noPolicy,
    between: ['new'],
    ends: () => noPolicy,
    succeeds: refusedOutcomes,
  };
}

const native = { name: 'resolver', uses: ['dns-edge'], reset: { native: 'resolver', min: 0 } };

/** Not even the directories above the host's are there. */
export async function prepareBare(world: ReplayWorld): Promise<MatrixExpectation> {
  world.configure({ workers: [native] });
  await world.repository.publish(files(2));
  rmSync(join(world.disk, 'lib'), { recursive: true });
  return { ...fromOldToNew, from: noPolicy };
}

export const hourMs = 3_600_000;

/** @param steps the error of the publisher's clock at each of its signatures; hosts have seen all but the last */
export async function prepareTime(world: ReplayWorld, steps: readonly number[]): Promise<MatrixExpectation> {
  const { repository } = world;
  await repository.publish(files(1));
  for (const [index, offByMs] of steps.entries()) {
    if (index > 0) await world.pull();
    const signers = await openOnlineSigners(repository.directory, keysAt(repository.keys));
    await signTimestamp(repository.directory, signers, systemClock.nowMs() + offByMs);
  }
  return { ...fromOldToNew, to: 'old', ends: () => 'old' };
}

/** Signs a timestamp without the check against the previous one, which the publisher's own code makes. */
async function signTimestamp(directory: string, signers: OnlineSigners, nowMs: number): Promise<void> {
  const layout = layoutOf(directory);
  const { root, snapshot, timestamp } = readRepositoryState(layout).live;
  const validityMs = readValidityPeriods(root.signed).timestamp;
  const named = { version: snapshot.signed.version, bytes: snapshot.bytes };
  const content = timestampContent({ version: timestamp.signed.version + 1, nowMs, validityMs }, named);
  writeFileSync(layout.timestamp, await signMetadata(content, signers.timestamp));
}

/** A file of the active policy was edited. */
export async function prepareDamaged(
  world: ReplayWorld,
  archive: 'archive kept' | 'archive lost',
): Promise<MatrixExpectation> {
  for (const version of [1, 2]) {
    await world.repository.publish(files(version));
    await world.pull();
  }
  const { archives, current } = pathsOf(world);
  appendFileSync(join(current, 'dns-edge', 'block.rpz'), '# mine\n');
  const newest = readdirSync(join(archives, 'dns-edge')).find((name) => name.startsWith('2-')) ?? '';
  // A release that came as a delta is retained as the base archive and the delta.
  const ofNewest = readdirSync(join(archives, 'dns-edge', newest)).filter((name) => name.endsWith('.tar.br'));
  if (archive === 'archive lost')
    for (const name of ofNewest) rmSync(join(archives, 'dns-edge', newest, name));
  const damaged = { ...oldAndNew.new, 'dns-edge/block.rpz': 'version 2\n# mine\n' };
  // A disk failure during the repair may also restore the previous generation.
  const [to, between] = archive === 'archive kept' ? (['new', ['old']] as const) : (['old', []] as const);
  return { policies: { ...oldAndNew, damaged }, from: 'damaged', to, between, ends: () => 'new' };
}

/** Large enough for a delta, and equal in each version. */
const list = { 'list.rpz': noise('list', 30_000) };
const withList = (version: number) => ({
  ...policyOf({ 'dns-edge': version }),
  'dns-edge/list.rpz': list['list.rpz'],
});
const oldAndNewByDifference = { old: withList(1), new: withList(2) };

function assertByDifference(world: ReplayWorld): void {
  const { archives } = pathsOf(world);
  const newest = readdirSync(join(archives, 'dns-edge')).find((name) => name.startsWith('2-')) ?? '';
  assert.ok(readdirSync(join(archives, 'dns-edge', newest)).includes('delta-1'), 'it came as a delta');
}

export async function prepareByDifference(world: ReplayWorld): Promise<MatrixExpectation> {
  await world.repository.publish({ ...files(1), ...list });
  await world.pull();
  await world.repository.publish({ ...files(2), ...list });
  return { policies: oldAndNewByDifference, from: 'old', to: 'new', ends: () => 'new' };
}

/** A file of a policy that came as a delta was edited: the repair rebuilds it from retained files. */
export async function prepareDamagedByDifference(world: ReplayWorld): Promise<MatrixExpectation> {
  await prepareByDifference(world);
  await world.pull();
  assertByDifference(world);
  appendFileSync(join(pathsOf(world).current, 'dns-edge', 'block.rpz'), '# mine\n');
  const damaged = { ...oldAndNewByDifference.new, 'dns-edge/block.rpz': 'version 2\n# mine\n' };
  const policies = { ...oldAndNewByDifference, damaged };
  return { policies, from: 'damaged', to: 'new', between: ['old'], ends: () => 'new' };
}

/** The record and the manifest of the active release are lost; its tree and its archive are intact. */
export async function prepareLost(world: ReplayWorld): Promise<MatrixExpectation> {
  for (const version of [1, 2]) {
    await world.repository.publish(files(version));
    await world.pull();
  }
  const kept = join(pathsOf(world).archives, 'dns-edge');
  const newest = readdirSync(kept).find((name) => name.startsWith('2-')) ?? '';
  for (const name of ['record.json', 'manifest.json', 'targets.json']) rmSync(join(kept, newest, name));
  return { policies: oldAndNew, from: 'new', to: 'new', ends: () => 'new' };
}

export async function prepareBroken(world: ReplayWorld): Promise<MatrixExpectation> {
  await world.repository.publish(files(1));
  await world.pull();
  await world.repository.publish(files(2));
  writeFileSync(pathsOf(world).ledger, '{"writ":1,');
  return { ...fromOldToNew, to: 'old' };
}

/** A directory is in the place of the ledger for the second time: the earlier set-aside copy must be deleted. */
export async function prepareDirectoryAtLedger(world: ReplayWorld): Promise<MatrixExpectation> {
  const expected = await prepareBroken(world);
  const { ledger } = pathsOf(world);
  rmSync(ledger);
  for (const path of [ledger, `${ledger}.damaged`]) {
    mkdirSync(path);
    writeFileSync(join(path, 'a file'), '');
  }
  return expected;
}

/** Writes the partial download that an interrupted cycle has left of the newest release. */
type LeavePartial = (path: string, archive: Buffer) => void;

const half = (archive: Buffer): number => Math.floor(archive.length / 2);

export const leftPartials = {
  'half of it': (path, archive) => {
    writeFileSync(path, archive.subarray(0, half(archive)), { mode: 0o600 });
    writeFileSync(`${path}.json`, '{"writ":1,"location":"http://elsewhere/","etag":"\\"1\\""}\n');
    // A temporary file with half a note, from a crash.
    writeFileSync(join(dirname(path), '.writ-tmp-0123456789ab'), '{');
  },
  'wrong bytes': (path, archive) => writeFileSync(path, Buffer.alloc(half(archive), 1), { mode: 0o600 }),
  'more than was signed': (path, archive) =>
    writeFileSync(path, Buffer.concat([archive, archive]), { mode: 0o600 }),
} satisfies Readonly<Record<string, LeavePartial>>;

export async function preparePartial(
  world: ReplayWorld,
  left: keyof typeof leftPartials,
): Promise<MatrixExpectation> {
  const { repository } = world;
  await repository.publish(files(1));
  await world.pull();
  const targets = join(repository.directory, 'targets', 'dns-edge');
  const before = readdirSync(targets);
  await repository.publish(files(2));
  const name = readdirSync(targets).find((one) => one.endsWith('.tar.br') && !before.includes(one)) ?? '';
  const path = join(pathsOf(world).partials, name.slice(0, 64));
  leftPartials[left](path, readFileSync(join(targets, name)));
  return fromOldToNew;
}

function pathsOf({ disk }: ReplayWorld): HostPaths {
  const state = join(disk, 'lib/writ');
  return hostPaths({ state, policy: join(state, 'policy'), run: '', socket: '' });
}
