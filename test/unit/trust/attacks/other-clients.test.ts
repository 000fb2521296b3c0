// Across implementations: what @tufjs/models makes and signs is accepted by our client, and what our publisher makes
// is accepted by the client of tuf-js, over HTTP, with the same bytes at the end.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { targetPath } from '../../../../src/core/names.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import type { PublishResult } from '../../../../src/publisher/release/publish.js';
import { openRepositoryClient, type RepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { openTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { serveDirectory, serveFiles } from '../../../kit/net/serve-repository.js';
import type { KeyType } from '../../../kit/repository/key-pairs.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';
import { tufJsClient } from '../../../kit/trust/tuf-js-client.js';
import {
  type ForeignKey,
  type ForeignRepository,
  type ForeignRepositoryOptions,
  foreignKey,
  foreignRelease,
  foreignRepository,
  type TopRole,
} from '../../../kit/trust/tuf-js-repository.js';

const nowMs = Date.UTC(2026, 10, 1);
const keyTypes: readonly KeyType[] = ['ed25519', 'ecdsa', 'rsa'];

const made = new Map<KeyType, Readonly<Record<TopRole, readonly ForeignKey[]>>>();

/** RSA keys take half a second each to make: one set a type is enough for all tests. */
function keysOf(type: KeyType): Readonly<Record<TopRole, readonly ForeignKey[]>> {
  const key = () => foreignKey(type);
  const keys = made.get(type) ?? {
    root: [key(), key()],
    timestamp: [key()],
    snapshot: [key()],
    targets: [key()],
  };
  made.set(type, keys);
  return keys;
}

function foreign(
  options: Partial<ForeignRepositoryOptions> & { readonly type?: KeyType },
): ForeignRepository {
  const { type = 'ed25519', ...rest } = options;
  const keys = keysOf(type);
  return foreignRepository({ nowMs, keys, thresholds: { root: 2 }, ...rest });
}

/** Our client, as an agent has it: a store on disk, HTTP. */
function ourClient(dir: TempDir, url: string, bootstrapRoot: Uint8Array): RepositoryClient {
  mkdirSync(dir.join('state'), { recursive: true });
  const root = dir.join('bootstrap.json');
  writeFileSync(root, bootstrapRoot);
  const clock = fakeClock({ nowMs });
  const store = openTrustStore({
    directory: dir.join('state', 'trust'),
    bootstrapRoot: root,
    fs: createDurableFs(),
  });
  return openRepositoryClient({ source: openRepositorySource(url, { clock, version: '0' }), store, clock });
}

/** @returns the archive; undefined if the trusted metadata lists none */
async function ourDownload(client: RepositoryClient, bundle: string): Promise<Buffer | undefined> {
  const target = await client.target(bundle, 'stable');
  if (target === undefined) return undefined;
  const parts: Buffer[] = [];
  for await (const chunk of client.streamTarget(target)) parts.push(chunk);
  const bytes = Buffer.concat(parts);
  assert.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, target.digest);
  return bytes;
}

describe('a repository signed by @tufjs/models', () => {
  for (const type of keyTypes) {
    for (const consistent of [true, false]) {
      for (const pinned of [true, false]) {
        const what = `${type} keys, ${consistent ? 'consistent' : 'plain names'}, ${pinned ? 'pinned' : 'versions only'}`;
        it(`is accepted by our client: ${what}`, async () => {
          using dir = tempDir();
          const content = Buffer.from(`archive of ${what}`);
          const { files, bootstrapRoot } = foreign({
            type,
            consistent,
            pinned,
            targets: foreignRelease('dns', content, nowMs),
          });
          await using server = await serveFiles(files);
          const client = ourClient(dir, server.url, bootstrapRoot);
          await client.refresh();
          assert.deepEqual(await ourDownload(client, 'dns'), content);
          assert.equal(await client.target('web', 'stable'), undefined);
          for (const role of ['root', 'timestamp', 'snapshot', 'targets'] as const) {
            const [name] = [...files.keys()].filter((path) => path.endsWith(`${role}.json`));
            assert.deepEqual(
              readFileSync(dir.join('state', 'trust', `${role}.json`)),
              files.get(name ?? ''),
              role,
            );
          }
          await client.close();
        });
      }
    }
  }

  it('may mix types of keys in one role, and below the threshold it is refused', async () => {
    using dir = tempDir();
    const mixed = keyTypes.map((type) => foreignKey(type));
    const keys = { root: mixed, timestamp: mixed, snapshot: mixed, targets: mixed };
    const all = { root: 3, timestamp: 3, snapshot: 3, targets: 3 };
    const content = Buffer.from('archive');
    const whole = foreignRepository({
      nowMs,
      keys,
      thresholds: all,
      targets: foreignRelease('dns', content, nowMs),
    });
    const files = new Map(whole.files);
    await using server = await serveFiles(files);
    const client = ourClient(dir, server.url, whole.bootstrapRoot);
    await client.refresh();
    assert.deepEqual(await ourDownload(client, 'dns'), content);
    for (const left of keyTypes.keys()) {
      const fewer: Record<TopRole, typeof mixed> = {
        ...keys,
        timestamp: mixed.filter((_, at) => at !== left),
      };
      const next = foreignRepository({ nowMs, keys: fewer, thresholds: all, version: 2 });
      files.set('metadata/timestamp.json', next.files.get('metadata/timestamp.json')!);
      await rejectsCode('SIGNATURE_THRESHOLD', client.refresh());
    }
    await client.close();
  });
});

function newDigest(result: PublishResult): string {
  assert.ok('archiveDigest' in result, result.kind);
  return result.archiveDigest;
}

describe('a repository of our publisher', longCase, () => {
  it('is accepted by tuf-js, with the same archives, through publishes, withdrawals and re-signing', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: fakeClock({ nowMs }) });
    const bootstrapRoot = readFileSync(repository.rootPath);
    await using server = await serveDirectory(repository.directory, () => false);
    let visits = 0;
    const accepted = async (bundles: Readonly<Record<string, string>>): Promise<void> => {
      visits += 1;
      const fresh = tufJsClient({
        directory: dir.join(`new-${visits}`),
        bootstrapRoot,
        url: server.url,
        nowMs,
      });
      const old = tufJsClient({ directory: dir.join('old'), bootstrapRoot, url: server.url, nowMs });
      for (const client of [fresh, old]) {
        await client.refresh();
        for (const [bundle, digest] of Object.entries(bundles)) {
          const bytes = await client.download(targetPath(bundle, 'stable'));
          assert.equal(
            `sha256:${createHash('sha256')
              .update(bytes ?? '')
              .digest('hex')}`,
            digest,
          );
          const path = join(repository.directory, 'targets', bundle, `${digest.slice(7)}.stable.tar.br`);
          assert.deepEqual(bytes, readFileSync(path));
        }
      }
    };
    await accepted({});
    const first = newDigest(await repository.publish({ 'a.rpz': 'a' }));
    await accepted({ 'dns-edge': first });
    const other = newDigest(await repository.publish({ 'policy.yaml': 'x: 1\n' }, { bundle: 'access' }));
    const second = newDigest(await repository.publish({ 'a.rpz': 'b' }, { withdraw: [1] }));
    await accepted({ 'dns-edge': second, access: other });
    await repository.refresh();
    await repository.refresh(['timestamp']);
    await accepted({ 'dns-edge': second, access: other });
  });
});
