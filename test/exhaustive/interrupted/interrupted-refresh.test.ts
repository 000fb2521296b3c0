// Kills the client before and after every labelled file operation of a refresh, and in the middle of every write:
// what lies on the disk at that moment is taken as the disk of a host that starts again. It refreshes, and it never
// goes below what it had accepted. Then the disk fails at every operation. The operations come from a run, so a new
// one gets its cases by itself.
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

/** What a host does in one go, and the repository before and at that moment. */
interface Story {
  readonly name: string;
  /** Absent: the host has never refreshed. */
  readonly before?: ReadonlyMap<string, Buffer>;
  readonly now: ReadonlyMap<string, Buffer>;
  readonly bootstrapRoot: Buffer;
  readonly ends: Readonly<Record<Role, number>>;
  /** A target to look for behind the refresh: its delegated role is fetched and stored then. */
  readonly lookFor?: { readonly path: string; readonly role: string; readonly version: number };
  /** True where a role's key was changed, so that its versions may begin again (5.3.11). */
  readonly rotates: boolean;
}

const serve = (files: ReadonlyMap<string, Buffer>): RepositorySource => simulatedSource(files, []);

function simulator(): RepositorySimulator {
  const repository = new RepositorySimulator({ nowMs });
  repository.pinned = true;
  repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('first'));
  return repository;
}

function stories(): Story[] {
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

/** A team publishes: its role has version 2. */
function delegating(): Story {
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
    lookFor: { path: 'dns/zone', role: 'dns%2Fteam', version: 2 },
  };
}

/** What the story is about: a refresh, and the search for a target where it has one. */
async function goThrough(client: RepositoryClient, { lookFor }: Story): Promise<boolean> {
  const { changed } = await client.refresh();
  if (lookFor !== undefined) assert.equal((await client.find(lookFor.path))?.length, 3);
  return changed;
}

async function hostBefore(story: Story): Promise<TrustHost> {
  const host = trustHost(story.bootstrapRoot, nowMs);
  if (story.before !== undefined) await goThrough(host.boot(serve(story.before)), story);
  return host;
}

interface Moment {
  readonly what: string;
  readonly image: TrustImage;
}

/** Every state of the disk that a kill can leave: around each operation, and within each write. */
async function momentsOf(story: Story): Promise<Moment[]> {
  using host = await hostBefore(story);
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
  await goThrough(host.boot(serve(story.now), observer), story);
  // Nothing lies between the end of one operation and the beginning of the next but time.
  const different = new Map(
    moments.map((moment) => [JSON.stringify([...moment.image].map(contentKey)), moment]),
  );
  return [...different.values()];
}

function contentKey([path, bytes]: readonly [string, Buffer]): readonly [string, string] {
  return [path.replace(/writ-tmp-.*/, 'writ-tmp'), bytes.toString('base64')];
}

/** A write that was cut: its temporary file has a part of the bytes. */
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

/** What must hold on whatever disk a kill has left. */
async function startsAgain(host: TrustHost, story: Story, what: string): Promise<void> {
  const accepted = storedVersions(host);
  const seen = statusVersions(host.boot(serve(story.now)));
  assert.ok((seen.root ?? 0) >= accepted.root, what);
  if (story.before !== undefined) await refusesTheOld(host, story, accepted, what);
  const client = host.boot(serve(story.now));
  const result = await client.refresh();
  for (const role of roles) assert.equal(result.roles[role]?.version, story.ends[role], `${what}: ${role}`);
  assert.deepEqual(storedVersions(host), story.ends, what);
  const writes: string[] = [];
  await goThrough(client, story);
  if (story.lookFor !== undefined)
    assert.equal(host.storedVersion(story.lookFor.role), story.lookFor.version, what);
  const next = host.boot(serve(story.now), { before: ({ op }) => void writes.push(op) });
  assert.equal(await goThrough(next, story), false, what);
  assert.deepEqual(writes, [], what);
}

/** A server that replays yesterday cannot lead the host back, and is told off once the host has seen today. */
async function refusesTheOld(host: TrustHost, story: Story, accepted: Versions, what: string): Promise<void> {
  const kept = host.image();
  const replay = host.boot(serve(story.before ?? story.now));
  const answer = await replay.refresh().catch((error: unknown) => error);
  if (isWritError(answer)) assert.notEqual(answer.code, 'INTERNAL', what);
  else assert.ok(!(answer instanceof Error), `${what}: ${answer}`);
  assert.ok((statusVersions(replay).root ?? 0) >= accepted.root, `${what}: root`);
  const sawToday = accepted.timestamp === story.ends.timestamp && accepted.root === story.ends.root;
  if (sawToday && !story.rotates) {
    assert.ok(isWritError(answer) && answer.code === 'METADATA_ROLLBACK', `${what}: ${answer}`);
    assert.equal(answer.facts['expected'], accepted.timestamp, what);
  }
  host.restore(kept);
}

describe('a refresh that is killed', () => {
  for (const story of stories()) {
    it(`at any moment of ${story.name}, is made up for by the next start`, async () => {
      const moments = await momentsOf(story);
      assert.ok(moments.length >= 10, String(moments.length));
      using host = await hostBefore(story);
      for (const { what, image } of sampled(moments)) {
        host.restore(image);
        await startsAgain(host, story, what);
      }
    });

    for (const errno of ['EIO', 'ENOSPC'] as const) {
      it(`says ${errno} and starts again, when the disk fails at any operation of ${story.name}`, async () => {
        const code = errno === 'EIO' ? 'DISK_FAILED' : 'DISK_FULL';
        const operations = await operationsOf(story);
        using host = await hostBefore(story);
        const kept = host.image();
        for (const [fatal, op] of sampled([...operations.entries()])) {
          host.restore(kept);
          const client = host.boot(serve(story.now), failing(errno, fatal));
          await rejectsCode(code, goThrough(client, story));
          // A bad sector is one write; a full disk stays full until somebody makes room.
          if (errno === 'EIO') await goThrough(client, story);
          await startsAgain(host, story, `${op} fails with ${errno}`);
        }
      });
    }
  }
});

async function operationsOf(story: Story): Promise<string[]> {
  using host = await hostBefore(story);
  const operations: string[] = [];
  await goThrough(host.boot(serve(story.now), { before: ({ op }) => void operations.push(op) }), story);
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
