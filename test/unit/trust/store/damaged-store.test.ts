// A state directory with files that are removed, truncated, garbled or exchanged, in combinations from a seed. The next refresh
// repairs it, or reports the damage and the fix. It never trusts a root of another repository, and never goes back behind the
// newest root that still verifies, whatever an old server sends.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { isWritError, type WritError } from '../../../../src/core/errors.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { caseSeed, type Seeded, seeded, testCases, testSeed } from '../../../kit/assert/seeded.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';
import { simulatedSource } from '../../../kit/repository/simulated-source.js';
import { type TrustHost, type TrustImage, trustHost } from '../../../kit/trust/trust-host.js';

const nowMs = Date.UTC(2026, 10, 1);
const lastRoot = 5;

interface World extends Disposable {
  readonly host: TrustHost;
  /** trust/ as it was before any damage. */
  readonly whole: TrustImage;
  readonly honest: ReadonlyMap<string, Buffer>;
  /** The server as it was at root 3, before the key of the timestamp was taken away from a thief. */
  readonly replay: ReadonlyMap<string, Buffer>;
  readonly stranger: RepositorySimulator;
}

async function world(): Promise<World> {
  const repository = new RepositorySimulator({ nowMs });
  repository.publishRelease({ bundle: 'dns', channel: 'stable' }, Buffer.from('archive'));
  const host = trustHost(repository.bootstrapRoot, nowMs);
  await host.boot(simulatedSource(repository.files, [])).refresh();
  repository.rotate('root');
  repository.rotate('targets');
  repository.publish();
  const replay = new Map(repository.files);
  repository.rotate('timestamp');
  repository.rotate('root');
  repository.publish();
  await host.boot(simulatedSource(repository.files, [])).refresh();
  assert.equal(host.storedVersion('root'), lastRoot);
  const stranger = new RepositorySimulator({ nowMs });
  for (let version = 2; version <= lastRoot; version += 1) stranger.rotate('root');
  const end = (): void => host[Symbol.dispose]();
  return { host, whole: host.image(), honest: repository.files, replay, stranger, [Symbol.dispose]: end };
}

/** What can befall one file; undefined means that it is gone. */
const harms: readonly ((bytes: Buffer, random: Seeded, others: readonly Buffer[]) => Buffer | undefined)[] = [
  () => undefined,
  (bytes, random) => bytes.subarray(0, random.int(bytes.length)),
  (bytes, random) => {
    const garbled = Buffer.from(bytes);
    for (let count = 1 + random.int(4); count > 0; count -= 1) {
      const at = random.int(bytes.length);
      garbled[at] = (garbled[at] ?? 0) ^ (1 + random.int(255));
    }
    return garbled;
  },
  (bytes) => Buffer.alloc(bytes.length),
  (_bytes, random, others) => random.pick(others),
];

function damage(whole: TrustImage, random: Seeded): TrustImage {
  const share = 1 + random.int(4);
  const others = [...whole.values()];
  const damaged = [...whole].map(([path, bytes]) => {
    return [path, random.once(share) ? random.pick(harms)(bytes, random, others) : bytes] as const;
  });
  return new Map(damaged.filter((entry): entry is [string, Buffer] => entry[1] !== undefined));
}

const isSame = (bytes: Buffer, real: Buffer): boolean => bytes.equals(real);

/** One of three signatures may be garbled where two are enough: what they are over is the same. */
function saysTheSame(bytes: Buffer, real: Buffer): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(bytes.toString()).signed, JSON.parse(real.toString()).signed);
  } catch {
    return false;
  }
}

/** The newest root that lies intact where it belongs. */
function newestIntact({ whole }: World, image: TrustImage, same = isSame): number {
  let newest = 0;
  for (let version = 1; version <= lastRoot; version += 1) {
    const real = whole.get(`roots/${version}.root.json`);
    const places = [image.get(`roots/${version}.root.json`), image.get('root.json')];
    if (places.some((bytes) => real !== undefined && bytes !== undefined && same(bytes, real)))
      newest = version;
  }
  return newest;
}

async function refreshOn(
  host: TrustHost,
  files: ReadonlyMap<string, Buffer>,
): Promise<WritError | undefined> {
  try {
    await host.boot(simulatedSource(files, [])).refresh();
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

/** Codes with a hint to fix the store. Metadata codes are for the files of an old server. */
const storeCodes: readonly string[] = ['TRUST_STORE_DAMAGED', 'ROOT_NOT_LINKED'];

describe('a trust store with any damage', () => {
  it(
    'is repaired or reports a fix, and never goes back behind a root that still verifies',
    longCase,
    async () => {
      using on = await world();
      const { host, whole } = on;
      const seen = { healed: 0, told: 0, 'went back': 0 };
      const seed = testSeed();
      for (let index = 0; index < testCases(100); index += 1) {
        const what = `WRIT_TEST_SEED=${seed}, case ${index}`;
        const image = damage(whole, seeded(caseSeed(seed, index)));
        const newest = newestIntact(on, image);

        host.restore(image);
        const misled = await refreshOn(host, on.replay);
        if (misled === undefined) {
          // A host that lost every file begins again at the bootstrap root, because it has no other evidence.
          assert.ok(newest <= 3, `${what}: accepted root 3 after root ${newest}`);
          seen['went back'] += 1;
        } else {
          assert.match(
            misled.code,
            /^(TRUST_STORE_DAMAGED|ROOT_NOT_LINKED|SIGNATURE_\w+|METADATA_ROLLBACK)$/,
            what,
          );
          assert.ok(misled.hint.length > 20, what);
        }
        // The refusal did not remove the trusted files.
        assert.ok(newestIntact(on, host.image(), saysTheSame) >= newest, `${what}: lost root ${newest}`);

        const error = await refreshOn(host, on.honest);
        if (error === undefined) {
          seen.healed += 1;
          const root = readFileSync(join(host.trust, 'root.json'));
          assert.ok(saysTheSame(root, whole.get('root.json') ?? root), what);
          for (const role of ['timestamp', 'snapshot', 'targets']) {
            assert.deepEqual(host.image().get(`${role}.json`), whole.get(`${role}.json`), `${what}: ${role}`);
          }
        } else {
          seen.told += 1;
          assert.ok(storeCodes.includes(error.code), `${what}: ${error.code}: ${error.message}`);
          assert.ok(error.hint.length > 20, what);
        }
      }
      for (const [kind, count] of Object.entries(seen)) assert.ok(count > 0, `no case ${kind}`);
    },
  );

  it('refuses or repairs a store in which one root is replaced by a root of another repository', async () => {
    using on = await world();
    const { host, whole, stranger } = on;
    for (const path of [...whole.keys()].filter((name) => name.endsWith('root.json'))) {
      for (let version = 1; version <= lastRoot; version += 1) {
        host.restore(new Map([...whole, [path, stranger.file(`${version}.root.json`)]]));
        for (const files of [stranger.files, on.replay]) {
          const error = await refreshOn(host, files);
          assert.ok(error !== undefined, `${path} with root ${version} of a stranger`);
        }
        const error = await refreshOn(host, on.honest);
        if (error !== undefined)
          assert.ok(storeCodes.includes(error.code), `${path} ${version}: ${error.code}`);
        else assert.deepEqual(readFileSync(join(host.trust, 'root.json')), whole.get('root.json'));
      }
    }
  });

  it('waits for the server if a gap in the history hides the newest root, and names the gap', async () => {
    using on = await world();
    const { host, whole } = on;
    const holed = new Map(whole);
    for (const path of ['root.json', 'roots/4.root.json']) holed.delete(path);
    host.restore(holed);
    for (const _again of [1, 2]) {
      const error = await rejectsCode(
        'TRUST_STORE_DAMAGED',
        host.boot(simulatedSource(on.replay, [])).refresh(),
      );
      assert.deepEqual([error.facts.expected, error.facts.actual], [5, 3]);
      assert.match(error.hint, /metadata\/4\.root\.json/);
    }
    writeFileSync(join(host.trust, 'roots', '4.root.json'), whole.get('roots/4.root.json') ?? '');
    assert.equal(host.boot(simulatedSource(on.replay, [])).status()?.roles.root?.version, 5);
    host.restore(holed);
    await host.boot(simulatedSource(on.honest, [])).refresh();
    assert.deepEqual(host.image(), whole);
  });

  it('follows a history that is ahead of root.json', async () => {
    using on = await world();
    const { host, whole } = on;
    host.restore(new Map([...whole, ['root.json', whole.get('roots/2.root.json') ?? Buffer.alloc(0)]]));
    assert.equal(host.boot(simulatedSource(on.replay, [])).status()?.roles.root?.version, lastRoot);
    await rejectsCode('METADATA_ROLLBACK', host.boot(simulatedSource(on.replay, [])).refresh());
    await host.boot(simulatedSource(on.honest, [])).refresh();
    assert.deepEqual(host.image(), whole);
  });
});
