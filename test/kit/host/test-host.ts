// A complete host for scenario tests: state, policy and run directories in a temporary directory, a repository in memory,
// scripted workers, and cycles in this process. It asserts nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { createSandbox } from '../../../src/agent/hooks/sandbox.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createHookDriver } from '../../../src/agent/notify/hook-driver.js';
import { prepareHost } from '../../../src/agent/startup/prepare-host.js';
import { isNewHost } from '../../../src/agent/startup/rebuild-ledger.js';
import type { Host } from '../../../src/agent/state/host.js';
import { openLedger } from '../../../src/agent/state/ledger-file.js';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { openRefusals } from '../../../src/agent/state/refusals-file.js';
import { createRestoreMemory } from '../../../src/agent/state/restore-memory.js';
import type {
  AgentConfig,
  BundleConfig,
  MirrorConfig,
  WorkerGroupConfig,
} from '../../../src/core/config/config.js';
import type { CycleEventLine, CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { given } from '../../../src/core/given.js';
import {
  defaultArchiveLimits,
  defaultMetadataLimits,
  defaultTransportLimits,
} from '../../../src/core/limits.js';
import type { DeltaInfo } from '../../../src/core/release/deltas.js';
import { encodeManifest, manifestDigest } from '../../../src/core/release/manifest.js';
import type { ReleaseInfo } from '../../../src/core/release/release.js';
import { createDurableFs, type OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { packBundle } from '../../../src/publisher/archive/build-bundle.js';
import { readSourceTree } from '../../../src/publisher/archive/source-tree.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { openTrustStore } from '../../../src/trust/store/trust-store.js';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { type FakeClock, fakeClock } from '../clock/fake-clock.js';
import {
  compress,
  deltaPlace,
  describeDelta,
  type PublishedTree,
  plainDelta,
  publishedTree,
} from '../delta/served-deltas.js';
import { memory, tempDir } from '../disk/temp-dir.js';
import { writeTree } from '../disk/write-tree.js';
import { RepositorySimulator } from '../repository/repository-simulator.js';

export type Files = Readonly<Record<string, string>>;

export interface TestGroup {
  readonly driver?: Driver;
  readonly config?: Partial<WorkerGroupConfig>;
}

export interface TestHostOptions {
  readonly bundles?: readonly (Partial<BundleConfig> & { readonly name: string })[];
  readonly groups?: Readonly<Record<string, TestGroup>>;
  readonly config?: Partial<AgentConfig>;
  readonly observer?: OperationObserver;
  /** Epoch milliseconds at the start; 2026-11-01 by default. */
  readonly nowMs?: number;
  /** The bootstrap root of another repository; `source` must then return that repository. */
  readonly bootstrapRoot?: Uint8Array;
  /** Wraps the source of the simulator. */
  readonly source?: (source: RepositorySource) => RepositorySource;
  /** Parent of the temporary directory; `memory()` by default, because flushes of hundreds of hosts load the disk. */
  readonly above?: string;
  /** How deltas are made and served. Undefined: there are no deltas. */
  readonly deltas?: DeltaMaker;
  /** Sources that replace the simulator, in order of preference. */
  readonly mirrors?: readonly RepositorySource[];
  /** Reply of a server to a contact request; reached by default. */
  readonly askServer?: Host['contactServer'];
  /** Features that the host supports, in place of those of this version: for tests of a later version. */
  readonly features?: readonly string[];
}

export interface DeltaMaker {
  /** Number of base releases; 4 by default. */
  readonly bases?: number;
  /** Makes the signed delta; a correct one by default. */
  readonly make?: (base: PublishedTree, next: PublishedTree) => Buffer;
  readonly serve?: (delta: Buffer) => Buffer | undefined;
}

export interface TestHost extends Disposable {
  readonly directory: string;
  readonly host: Host;
  readonly clock: FakeClock;
  readonly repository: RepositorySimulator;
  /** Packs and publishes a release; members missing in `info` have defaults. @returns the archive */
  publish(
    bundle: string,
    files: Files,
    info: Partial<ReleaseInfo> & { readonly serial: number },
  ): Promise<Buffer>;
  /** Runs one cycle. @returns its result and its events */
  sync(options?: {
    readonly force?: 'yes' | 'no';
  }): Promise<CycleEnd & { readonly events: CycleEventLine[] }>;
  /** As sync, with the result only. */
  pull(options?: { readonly force?: 'yes' | 'no' }): Promise<CycleResult>;
  /** As pull, on a reopened host. */
  pullOn(host: Host): Promise<CycleResult>;
  /** @returns the host as the agent opens it after a restart, on the same directories */
  reopen(options?: TestHostOptions): Host;
  /** @returns the text of a file below `policy/current`; throws ENOENT if it is missing */
  read(path: string): string;
}

/**
 * @returns a host that has run no cycle
 * @example using test = testHost({ bundles: [{ name: 'access' }] });
 */
export function testHost(options: TestHostOptions = {}): TestHost {
  const dir = tempDir(options.above ?? memory());
  const clock = fakeClock({ nowMs: options.nowMs ?? Date.UTC(2026, 10, 1), mode: 'skip' });
  const repository = new RepositorySimulator({ nowMs: clock.nowMs() });
  fs.writeFileSync(dir.join('root.json'), options.bootstrapRoot ?? repository.bootstrapRoot);
  const open = (more: TestHostOptions): Host =>
    makeHost(dir.path, clock, repository, { ...options, ...more });
  const host = open({});
  prepareHost(host.paths, host.durable);
  let packed = 0;
  const published = new Map<string, PublishedTree[]>();
  const syncOn = async (
    opened: Host,
    { force = 'no' }: { readonly force?: 'yes' | 'no' } = {},
  ): ReturnType<TestHost['sync']> => {
    const events: CycleEventLine[] = [];
    const end = await syncCycle(opened, {
      cycle: newCycleId(),
      trigger: force === 'yes' ? 'force' : 'pull',
      force,
      signal: new AbortController().signal,
      onEvent: (event) => events.push(event),
    });
    return { ...end, events };
  };
  const sync: TestHost['sync'] = (syncOptions) => syncOn(host, syncOptions);
  return {
    directory: dir.path,
    host,
    clock,
    repository,
    sync,
    reopen: (more = {}) => open(more),
    pull: async (pullOptions) => (await sync(pullOptions)).result,
    pullOn: async (opened) => (await syncOn(opened)).result,
    read: (path) => fs.readFileSync(join(host.paths.current, path), 'utf8'),
    publish: async (bundle, files, info) => {
      packed += 1;
      const source = writeTree(dir.join(`source-${packed}`), files);
      const { archive, manifestBytes } = await pack(source, dir.join(`archive-${packed}`));
      const manifest = { digest: manifestDigest(manifestBytes), length: manifestBytes.length };
      const trees = published.get(bundle) ?? [];
      const next = await publishedTree(source);
      const deltas = options.deltas && offerDeltas(repository, options.deltas, { bundle, trees, next });
      published.set(bundle, [...trees, next]);
      repository.publishRelease(
        { bundle, channel: 'stable', createdAtMs: clock.nowMs(), manifest, ...given({ deltas }), ...info },
        archive,
      );
      return archive;
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** @returns the signed descriptions of the deltas; undefined if there are none */
function offerDeltas(
  repository: RepositorySimulator,
  {
    bases = 4,
    make = (base, next) => compress(plainDelta(base, next)),
    serve = (delta) => delta,
  }: DeltaMaker,
  { bundle, trees, next }: { bundle: string; trees: readonly PublishedTree[]; next: PublishedTree },
): DeltaInfo[] | undefined {
  const deltas = trees.slice(-bases).map((base) => {
    const delta = make(base, next);
    const info = describeDelta(base, delta);
    const served = serve(delta);
    if (served !== undefined) repository.files.set(deltaPlace(bundle, info), served);
    return info;
  });
  return deltas.length === 0 ? undefined : deltas;
}

async function pack(
  source: string,
  archivePath: string,
): Promise<{ archive: Buffer; manifestBytes: Buffer }> {
  const durableFs = createDurableFs();
  const tree = await readSourceTree(source, defaultArchiveLimits);
  await packBundle(tree, { archivePath, limits: defaultArchiveLimits, durableFs });
  return { archive: fs.readFileSync(archivePath), manifestBytes: encodeManifest(tree.manifest) };
}

function makeHost(
  directory: string,
  clock: FakeClock,
  repository: RepositorySimulator,
  options: TestHostOptions,
): Host {
  const config = testConfig(directory, options);
  const paths = hostPaths(config);
  const durable = createDurableFs(options.observer);
  const [source = options.source?.(repository.source()) ?? repository.source(), ...mirrors] =
    options.mirrors ?? [];
  const store = openTrustStore({ directory: paths.trust, bootstrapRoot: config.root, fs: durable });
  return {
    config,
    paths,
    durable,
    clock,
    log: silentLog(),
    client: openRepositoryClient({ source, mirrors, store, clock }),
    sandbox: createSandbox({ mode: config.sandbox, log: silentLog() }),
    groups: config.workers.map((one) => {
      const driver = options.groups?.[one.name]?.driver;
      const hooks = one.reset === undefined ? createHookDriver(one) : undefined;
      if (hooks !== undefined) return { config: one, driver: hooks, noteLoaded: hooks.noteLoaded };
      return { config: one, ...(driver ? { driver } : {}) };
    }),
    ledger: openLedger(paths.ledger, durable, () => isNewHost(paths)),
    refusals: openRefusals(paths.rejected, durable),
    contactServer: options.askServer ?? (async () => undefined),
    restoreMemory: createRestoreMemory(),
    observedWorkers: new Set(),
    ...given({ features: options.features }),
  };
}

function testConfig(directory: string, options: TestHostOptions): AgentConfig {
  const bundles = options.bundles ?? [{ name: 'access' }];
  const names = bundles.map((one) => one.name);
  const [first = 'file:///nowhere/', ...others] = (options.mirrors ?? []).map((one) => one.location);
  const place = (url: string): MirrorConfig => ({ url, redirects: [] });
  return {
    repository: [place(first), ...others.map(place)],
    root: join(directory, 'root.json'),
    state: join(directory, 'state'),
    policy: join(directory, 'state', 'policy'),
    run: join(directory, 'run'),
    socket: join(directory, 'run', 'agent.sock'),
    host: { id: 'test', labels: {} },
    poll: { kind: 'every', everyMs: 300_000 },
    bundles: bundles.map((one) => ({ channel: 'stable', checks: [], mode: 0o644, ...one })),
    together: [],
    sandbox: 'off',
    workers: Object.entries(options.groups ?? {}).map(([name, group]) => testGroup(name, names, group)),
    keep: { generations: 3, graceMs: 600_000 },
    refusals: { retryMs: 3_600_000 },
    scrub: { everyMs: 3_600_000, repair: 'yes', bytesPerSecond: 1e9 },
    freshness: { staleAfterMs: 900_000, release: { staleAfterMs: 900_000 } },
    untrusted: 'keep',
    limits: defaultArchiveLimits,
    metadataLimits: defaultMetadataLimits,
    transport: defaultTransportLimits,
    ...options.config,
  };
}

function testGroup(name: string, uses: readonly string[], group: TestGroup): WorkerGroupConfig {
  const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 0 };
  return { name, uses, when: [], confirm: 'warn', ...(group.driver ? { reset } : {}), ...group.config };
}
