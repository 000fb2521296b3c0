// Kills the client before and after each labelled file operation of a refresh, and inside each write. A host starts with the
// disk of that moment: it refreshes, and never accepts less than it had accepted. Then the disk fails at each operation. A run
// provides the operations, so a new one gets its cases.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWritError } from '../../../src/core/errors.js';
import type { OperationObserver } from '../../../src/platform/disk/durable-fs.js';
import type { RepositoryClient } from '../../../src/trust/repository-client.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { sampled } from '../../kit/assert/sample.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';
import { simulatedSource } from '../../kit/repository/simulated-source.js';
import { type TrustHost, type TrustImage, trustHost } from '../../kit/trust/trust-host.js';

const nowMs = Date.UTC(2026, 10, 1);
const roles = ['root', 'timestamp', 'snapshot', 'targets'] as const;
type Role = (typeof roles)[number];

/** A refresh of a host, with the repository before it and at it. */
interface Scenario {
  readonly name: string;
  /** Absent when the host has never refreshed. */
  readonly before?: ReadonlyMap<string, Buffer>;
  readonly now: ReadonlyMap<string, Buffer>;
  readonly bootstrapRoot: Buffer;
  readonly ends: Readonly<Record<Role, number>>;
  /** A target to search after the refresh, which downloads and stores its delegated role. */
  readonly searchedTarget?: { readonly path: string; readonly role: string; readonly version: number };
  /** True after a change of a role's key, so that its versions may start again (5.3.11). */
  readonly rotates: boolean;
}

const serve = (files: ReadonlyMap<string, Buffer>): RepositorySource => simulatedSource(files, []);

function simulator(): RepositorySimulator {
  const repository = new RepositorySimulator({ nowMs });
  repository.pinned = true;
  repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('first'));
  return repository;
}

function scenarios(): Scenario[] {
  const first = simulator();
  const { bootstrapRoot } = first;
  const start = { root: 1, timestamp: 2, snapshot: 2, targets: 2 };
  const fresh = new Map(first.files);
  first.publishRelease({ bundle: 'dns', channel: 'stable', serial: 2 }, Buffer.from('second'));
  const next = new Map(first.files);
  for (const role of ['root', 'targets', 'root'] as const) first.rotate(role);
  first.publish();
  const rotated = new Map(first.files);
  first.rotate('timestamp');
  first.timestamp.version = 1;
  first.snapshot.version = 1;
  first.writeTargets();
  const forwarded = new Map(first.files);
  const common = { bootstrapRoot, rotates: false };
  const teams = delegating();
  return [
    teams,
    { ...common, name: 'a first refresh', now: fresh, ends: start },
    {
      ...common,
      name: 'an update',
      before: fresh,
      now: next,
      ends: { root: 1, timestamp: 3, snapshot: 3, targets: 3 },
    },
    {
      ...common,
      name: 'three new roots and an update',
      before: next,
      now: rotated,
      ends: { root: 4, timestamp: 4, snapshot: 4, targets: 4 },
    },
    {
      ...common,
      name: 'a fast-forward recovery',
      before: rotated,
      now: forwarded,
      ends: { root: 5, timestamp: 1, snapshot: 1, targets: 4 },
      rotates: true,
    },
  ];
}

/** A team publishes version 2 of its role. */
function delegating(): Scenario {
  const repository = simulator();
  const team = repository.delegate('targets', { name: 'dns/team', paths: ['dns/*'] });
  repository.addTarget('dns/zone', Buffer.from('one'), { listedBy: 'dns/team' });
  repository.publish();
  const before = new Map(repository.files);
  repository.addTarget('dns/zone', Buffer.from('two'), { listedBy: 'dns/team' });
  team.signed.version += 1;
  repository.publish();
  return {
    name: 'an update of a delegated role',
    bootstrapRoot: repository.bootstrapRoot,
    rotates: false,
    before,
    now: repository.files,
    ends: { root: 1, timestamp: 4, snapshot: 4, targets: 4 },
    searchedTarget: { path: 'dns/zone', role: 'dns%2Fteam', version: 2 },
  };
}

/** Refreshes, and searches the target of the scenario if it has one. */
async function runScenario(client: RepositoryClient, { searchedTarget }: Scenario): Promise<boolean> {
  const { changed } = await client.refresh();
  if (searchedTarget !== undefined) assert.equal((await client.find(searchedTarget.path))?.length, 3);
  return changed;
}

async function hostBefore(scenario: Scenario): Promise<TrustHost> {
  const host = trustHost(scenario.bootstrapRoot, nowMs);
  if (scenario.before !== undefined) await runScenario(host.boot(serve(scenario.before)), scenario);
  return host;
}

interface Moment {
  readonly what: string;
  readonly image: TrustImage;
}

/** Every disk state that a kill can leave: around each operation, and inside each write. */
async function momentsOf(scenario: Scenario): Promise<Moment[]> {
  using host = await hostBefore(scenario);
  const moments: Moment[] = [];
  const take = (what: string): void => {
    moments.push({ what, image: host.image() });
  };
  const observer: OperationObserver = {
    before: ({ op }) => take(`before ${op}`),
    after: ({ op }) => {
      if (op.endsWith(':write')) for (const share of [0, 0.5]) moments.push(torn(host.image(), op, share));
      take(`after ${op}`);
    },
  };
  await runScenario(host.boot(serve(scenario.now), observer), scenario);
  // Nothing happens between the end of one operation and the start of the next.
  const different = new Map(
    moments.map((moment) => [JSON.stringify([...moment.image].map(contentKey)), moment]),
  );
  return [...different.values()];
}

function contentKey([path, bytes]: readonly [string, Buffer]): readonly [string, string] {
  return [path.replace(/writ-tmp-.*/, 'writ-tmp'), bytes.toString('base64')];
}

/** An interrupted write: its temporary file has a part of the bytes. */
function torn(image: TrustImage, op: string, share: number): Moment {
  const cut = [...image].map(([path, bytes]) => {
    return [path, path.includes('.writ-tmp-') ? bytes.subarray(0, bytes.length * share) : bytes] as const;
  });
  return { what: `at ${share} of ${op}`, image: new Map(cut) };
}

type Versions = Readonly<Record<Role, number>>;

function storedVersions(host: TrustHost): Versions {
  const version = (role: Role): number => host.storedVersion(role);
  return {
    root: version('root'),
    timestamp: version('timestamp'),
    snapshot: version('snapshot'),
    targets: version('targets'),
  };
}

function statusVersions(client: RepositoryClient): Partial<Record<Role, number>> {
  const status = client.status();
  return Object.fromEntries(roles.map((role) => [role, status?.roles[role]?.version]));
}

/** Requires that a client starts on the disk that a kill has left. */
async function requireRestart(host: TrustHost, scenario: Scenario, what: string): Promise<void> {
  const accepted = storedVersions(host);
  const seen = statusVersions(host.boot(serve(scenario.now)));
  assert.ok((seen.root ?? 0) >= accepted.root, what);
  if (scenario.before !== undefined) await requireRollbackRefused(host, scenario, accepted, what);
  const client = host.boot(serve(scenario.now));
  const result = await client.refresh();
  for (const role of roles)
    assert.equal(result.roles[role]?.version, scenario.ends[role], `${what}: ${role}`);
  assert.deepEqual(storedVersions(host), scenario.ends, what);
  const writes: string[] = [];
  await runScenario(client, scenario);
  if (scenario.searchedTarget !== undefined)
    assert.equal(host.storedVersion(scenario.searchedTarget.role), scenario.searchedTarget.version, what);
  const next = host.boot(serve(scenario.now), { before: ({ op }) => void writes.push(op) });
  assert.equal(await runScenario(next, scenario), false, what);
  assert.deepEqual(writes, [], what);
}

/**
 * Requires that a server with old metadata cannot roll the host back, and is refused once the host has the new
 * metadata.
 */
async function requireRollbackRefused(
  host: TrustHost,
  scenario: Scenario,
  accepted: Versions,
  what: string,
): Promise<void> {
  const kept = host.image();
  const replay = host.boot(serve(scenario.before ?? scenario.now));
  const answer = await replay.refresh().catch((error: unknown) => error);
  if (isWritError(answer)) assert.notEqual(answer.code, 'INTERNAL', what);
  else assert.ok(!(answer instanceof Error), `${what}: ${answer}`);
  assert.ok((statusVersions(replay).root ?? 0) >= accepted.root, `${what}: root`);
  const sawToday = accepted.timestamp === scenario.ends.timestamp && accepted.root === scenario.ends.root;
  if (sawToday && !scenario.rotates) {
    assert.ok(isWritError(answer) && answer.code === 'METADATA_ROLLBACK', `${what}: ${answer}`);
    assert.equal(answer.facts['expected'], accepted.timestamp, what);
  }
  host.restore(kept);
}

describe('a refresh that is killed', () => {
  for (const scenario of scenarios()) {
    it(`at any moment of ${scenario.name}, is completed by the next start`, async () => {
      const moments = await momentsOf(scenario);
      assert.ok(moments.length >= 10, String(moments.length));
      using host = await hostBefore(scenario);
      for (const { what, image } of sampled(moments)) {
        host.restore(image);
        await requireRestart(host, scenario, what);
      }
    });

    for (const errno of ['EIO', 'ENOSPC'] as const) {
      it(`reports ${errno} and starts again when the disk fails at any operation of ${scenario.name}`, async () => {
        const code = errno === 'EIO' ? 'DISK_FAILED' : 'DISK_FULL';
        const operations = await operationsOf(scenario);
        using host = await hostBefore(scenario);
        const kept = host.image();
        for (const [fatal, op] of sampled([...operations.entries()])) {
          host.restore(kept);
          const client = host.boot(serve(scenario.now), failing(errno, fatal));
          await rejectsCode(code, runScenario(client, scenario));
          // A bad sector fails one write; a full disk stays full until space is freed.
          if (errno === 'EIO') await runScenario(client, scenario);
          await requireRestart(host, scenario, `${op} fails with ${errno}`);
        }
      });
    }
  }
});

async function operationsOf(scenario: Scenario): Promise<string[]> {
  using host = await hostBefore(scenario);
  const operations: string[] = [];
  await runScenario(
    host.boot(serve(scenario.now), { before: ({ op }) => void operations.push(op) }),
    scenario,
  );
  return operations;
}

function failing(errno: 'EIO' | 'ENOSPC', fatal: number): OperationObserver {
  let at = -1;
  return {
    before: ({ op }) => {
      at += 1;
      if (at === fatal || (errno === 'ENOSPC' && at > fatal)) {
        throw Object.assign(new Error(`${errno}: ${op}`), { code: errno });
      }
    },
  };
}
