// The cycles that are recorded: for each a host and a repository in a temporary directory, prepared up to the moment
// before, the command, and which policies there may be. The host's disk is one directory, `disk/`, that holds nothing
// else: what lies beside it (configuration, repository, run directory) a power cut does not concern.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pullStandalone } from '../../../src/agent/control/standalone-commands.js';
import { activeGenerationNumber } from '../../../src/agent/generations/generations.js';
import type { Host } from '../../../src/agent/state/host.js';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import type { AgentConfig } from '../../../src/core/config/config.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { noPolicy, type Policies, type PolicyFiles } from '../../kit/assert/host-invariant.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { commit, newKey, proposal, signedBy } from '../../kit/repository/ceremony.js';
import { type SampleRepository, sampleRepository } from '../../kit/repository/sample-repository.js';

export interface ReplayWorld {
  readonly dir: TempDir;
  /** Real path of what the power cut concerns. */
  readonly disk: string;
  readonly configPath: string;
  readonly repository: SampleRepository;
  /** Writes the configuration with these keys beside the usual ones. */
  configure(changes: Readonly<Record<string, unknown>>): void;
  /** `writ pull`, in this process. */
  pull(): Promise<void>;
}

/** What may be found on a disk after a cut, and what must come of it. */
export interface Expectation {
  readonly policies: Policies;
  /** Active before the cycle. */
  readonly from: string;
  /** `start`: what was active before is damaged, and any start mends it. */
  readonly mends?: 'start';
  /** Active when the cycle has succeeded. */
  readonly to: string;
  /** Active after the next clean cycle, whichever of the two was active before it. */
  readonly ends: (active: string) => string;
  /** Outcomes of that cycle that are a success. */
  readonly succeeds?: readonly string[];
  /** Of the host behind its next clean cycle. */
  readonly afterwards?: (host: Host) => void;
  /** Of a started host after an acknowledged cycle, beside its policy. */
  readonly keeps?: (host: Host) => void;
}

export interface ReplayCycle {
  readonly name: string;
  /** Arguments of `writ`, without the configuration. */
  readonly argv: readonly string[];
  prepare(world: ReplayWorld): Promise<Expectation>;
}

const stateInDisk = 'lib/writ';

/** A repository without a release, and a host that has never run. */
export function makeWorld(dir: TempDir): ReplayWorld {
  const root = fs.realpathSync(dir.path);
  const repository = sampleRepository(dir, { clock: systemClock });
  const configPath = join(root, 'agent.yaml');
  const configure: ReplayWorld['configure'] = (changes) =>
    fs.writeFileSync(
      configPath,
      JSON.stringify({
        repository: repository.url,
        root: repository.rootPath,
        state: join(root, 'disk', stateInDisk),
        run: join(root, 'run'),
        bundles: [{ name: 'dns-edge' }],
        // Its processes and mounts would be recorded too.
        sandbox: 'off',
        ...changes,
      }),
    );
  configure({});
  fs.mkdirSync(join(root, 'disk', 'lib'), { recursive: true });
  const signal = new AbortController().signal;
  return {
    dir,
    disk: join(root, 'disk'),
    configPath,
    repository,
    configure,
    pull: async () => {
      const options = { configPath, by: 'test', version: 'test', signal, onEvent: () => undefined };
      const result = await pullStandalone({ ...options, force: false });
      assert.equal(result.exitCode, 0, JSON.stringify(result.problems));
    },
  };
}

/** @param config of the world, for a disk and a run directory elsewhere */
export function configAt(
  config: AgentConfig,
  disk: string,
  run: string,
): { readonly config: AgentConfig; readonly paths: HostPaths } {
  const state = join(disk, stateInDisk);
  const moved = { ...config, state, policy: join(state, 'policy'), run, socket: join(run, 'agent.sock') };
  return { config: moved, paths: hostPaths(moved) };
}

/** Two plain files, one in a directory and longer than a block. */
export function files(version: number): Readonly<Record<string, string>> {
  return { 'block.rpz': `version ${version}\n`, 'views/inside.rpz': `version ${version}\n`.repeat(700) };
}

export function policyOf(versions: Readonly<Record<string, number>>): PolicyFiles {
  const all = Object.entries(versions).flatMap(([bundle, version]) =>
    Object.entries(files(version)).map(([path, text]) => [join(bundle, path), text] as const),
  );
  return Object.fromEntries(all);
}

const old = policyOf({ 'dns-edge': 1 });
const fresh = policyOf({ 'dns-edge': 2 });

export const replayCycles: readonly ReplayCycle[] = [
  {
    name: 'first start',
    argv: ['pull'],
    prepare: async ({ repository }) => {
      await repository.publish(files(2));
      return { policies: { new: fresh }, from: noPolicy, to: 'new', ends: () => 'new' };
    },
  },
  {
    name: 'update',
    argv: ['pull'],
    prepare: async (world) => {
      // The cycle collects the oldest of the generations behind it.
      world.configure({ keep: { generations: 2, grace: '0s' } });
      for (const version of [8, 9, 1]) {
        await world.repository.publish(files(version));
        await world.pull();
      }
      await world.repository.publish(files(2));
      return { policies: { old, new: fresh }, from: 'old', to: 'new', ends: () => 'new' };
    },
  },
  {
    name: 'update of two bundles',
    argv: ['pull'],
    prepare: async (world) => {
      const bundles = ['dns-edge', 'access'];
      const reset = { run: ['true'], confirms: true };
      world.configure({
        bundles: bundles.map((name) => ({ name })),
        together: [bundles],
        workers: [{ name: 'app', uses: bundles, reset }],
      });
      for (const version of [1, 2]) {
        await world.repository.publish(files(version));
        await world.repository.publish(files(version), { bundle: 'access' });
        if (version === 1) await world.pull();
      }
      const policies = {
        old: policyOf({ 'dns-edge': 1, access: 1 }),
        new: policyOf({ 'dns-edge': 2, access: 2 }),
      };
      return { policies, from: 'old', to: 'new', ends: () => 'new', afterwards: requireToldWorker };
    },
  },
  {
    name: 'rollback',
    argv: ['rollback'],
    prepare: async (world) => {
      for (const version of [1, 2]) {
        await world.repository.publish(files(version));
        await world.pull();
      }
      return {
        policies: { old, new: fresh },
        from: 'new',
        to: 'old',
        // The hold came with the swap: what was left is not brought back by a poll.
        ends: (active) => active,
        succeeds: ['unchanged', 'deferred'],
      };
    },
  },
  {
    name: 'repair',
    argv: ['verify', '--repair'],
    prepare: async (world) => {
      await world.repository.publish(files(1));
      await world.pull();
      const state = join(world.disk, stateInDisk);
      fs.appendFileSync(join(state, 'policy', 'current', 'dns-edge', 'block.rpz'), 'edited by hand\n');
      const damaged = { ...old, 'dns-edge/block.rpz': `${old['dns-edge/block.rpz']}edited by hand\n` };
      return {
        policies: { damaged, new: old },
        from: 'damaged',
        to: 'new',
        mends: 'start',
        ends: () => 'new',
      };
    },
  },
  {
    name: 'root rotation',
    argv: ['pull'],
    prepare: async (world) => {
      const { repository } = world;
      await repository.publish(files(1));
      await world.pull();
      for (const role of ['timestamp', 'targets'] as const) await replaceKey(world, role);
      await repository.publish(files(2));
      return {
        policies: { old, new: fresh },
        from: 'old',
        to: 'new',
        ends: () => 'new',
        keeps: (host) => requireRoles(host, { root: 3, targets: 3 }),
      };
    },
  },
  {
    // Nothing is staged, and no `sync -f` helps: the trust store stands on its own flushes.
    name: 'new keys and no new release',
    argv: ['pull'],
    prepare: async (world) => {
      await world.repository.publish(files(1));
      await world.pull();
      await replaceKey(world, 'timestamp');
      await replaceKey(world, 'root');
      const roles = { root: 3, timestamp: 1 };
      return {
        policies: { old },
        from: 'old',
        to: 'old',
        ends: () => 'old',
        keeps: (host) => requireRoles(host, roles),
      };
    },
  },
];

/** One ceremony: a new root, in which the role has another key. */
export async function replaceKey(
  { repository, dir }: ReplayWorld,
  role: 'root' | 'timestamp' | 'targets',
): Promise<void> {
  const key = newKey(dir, `${role}-new`);
  const change = role === 'root' ? { add: [{ role, key }] } : { replace: [{ role, keys: [key] }] };
  const signed = await signedBy(repository, proposal(repository, change), ['root-1.key', 'root-2.key']);
  await commit(repository, signed);
}

/** Whatever the ledger lost or kept: in the end the worker is known to use what is active. */
function requireToldWorker({ ledger, paths }: Host): void {
  const { wanted, confirmed, state } = ledger.read().workers['app/true'] ?? {};
  const active = activeGenerationNumber(paths);
  assert.deepEqual({ wanted, confirmed, state }, { wanted: active, confirmed: active, state: 'confirmed' });
}

/** What was accepted once is never gone back behind. */
export function requireRoles({ client }: Host, least: Readonly<Record<string, number>>): void {
  const roles = client.status()?.roles as Readonly<Record<string, { version: number } | undefined>>;
  for (const [role, version] of Object.entries(least)) {
    assert.ok(
      (roles[role]?.version ?? 0) >= version,
      `${role} ${version} was accepted, not ${roles[role]?.version}`,
    );
  }
}
