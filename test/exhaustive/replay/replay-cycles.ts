// The recorded cycles: for each a host and a repository in a temporary directory, prepared up to the moment before the cycle,
// the command, and the possible policies. The host's disk is the directory `disk/` alone: a power cut does not affect the
// files beside it (configuration, repository, run directory).
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
  /** Real path of the directory that a power cut affects. */
  readonly disk: string;
  readonly configPath: string;
  readonly repository: SampleRepository;
  /** Writes the configuration with these additional keys. */
  configure(changes: Readonly<Record<string, unknown>>): void;
  /** Runs `writ pull` in this process. */
  pull(): Promise<void>;
}

/** The policies that a disk may have after a cut, and the expected result of recovery. */
export interface Expectation {
  readonly policies: Policies;
  /** The policy before the cycle. */
  readonly from: string;
  /** `start`: the policy before the cycle is damaged, and any start repairs it. */
  readonly repairedBy?: 'start';
  /** The policy after a successful cycle. */
  readonly to: string;
  /** The policy after the next cycle without faults, for either policy before it. */
  readonly ends: (active: string) => string;
  /** The successful outcomes of that cycle. */
  readonly succeeds?: readonly string[];
  /** Further checks of the host after that cycle. */
  readonly afterwards?: (host: Host) => void;
  /** Further checks of a started host after an acknowledged cycle. */
  readonly keeps?: (host: Host) => void;
}

export interface ReplayCycle {
  readonly name: string;
  /** Arguments of `writ`, without the configuration. */
  readonly argv: readonly string[];
  prepare(world: ReplayWorld): Promise<Expectation>;
}

const stateInDisk = 'lib/writ';

/** Creates a repository without a release, and a host that has never run. */
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
        // Without a sandbox, because its processes and mounts would be recorded too.
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

/** @param config of the world @returns it for another disk and run directory */
export function configAt(
  config: AgentConfig,
  disk: string,
  run: string,
): { readonly config: AgentConfig; readonly paths: HostPaths } {
  const state = join(disk, stateInDisk);
  const moved = { ...config, state, policy: join(state, 'policy'), run, socket: join(run, 'agent.sock') };
  return { config: moved, paths: hostPaths(moved) };
}

/** Two regular files, one in a directory and longer than a block. */
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
      // The cycle collects the oldest generation.
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
      return { policies, from: 'old', to: 'new', ends: () => 'new', afterwards: requireNotifiedWorker };
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
        // The swap also holds the release: a poll does not activate it again.
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
        repairedBy: 'start',
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
    // Nothing is staged, so no `sync -f` runs: the trust store needs its own flushes.
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

/** Publishes a new root with another key for the role. */
export async function replaceKey(
  { repository, dir }: ReplayWorld,
  role: 'root' | 'timestamp' | 'targets',
): Promise<void> {
  const key = newKey(dir, `${role}-new`);
  const change = role === 'root' ? { add: [{ role, key }] } : { replace: [{ role, keys: [key] }] };
  const signed = await signedBy(repository, proposal(repository, change), ['root-1.key', 'root-2.key']);
  await commit(repository, signed);
}

/** Requires that the worker is known to use the active generation, whatever the ledger has lost. */
function requireNotifiedWorker({ ledger, paths }: Host): void {
  const { wanted, confirmed, state } = ledger.read().workers['app/true'] ?? {};
  const active = activeGenerationNumber(paths);
  assert.deepEqual({ wanted, confirmed, state }, { wanted: active, confirmed: active, state: 'confirmed' });
}

/** Requires that no accepted version of a role is lost. */
export function requireRoles({ client }: Host, least: Readonly<Record<string, number>>): void {
  const roles = client.status()?.roles as Readonly<Record<string, { version: number } | undefined>>;
  for (const [role, version] of Object.entries(least)) {
    assert.ok(
      (roles[role]?.version ?? 0) >= version,
      `${role} ${version} was accepted, not ${roles[role]?.version}`,
    );
  }
}
