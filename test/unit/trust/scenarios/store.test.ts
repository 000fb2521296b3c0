// What becomes of trust when its own files are damaged, and when two clients share them: every single file may be
// cut, emptied, swapped or lost, and the next refresh makes up for it without trusting less or asking for more.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../../src/platform/disk/process-lock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { benchWithTeams } from '../../../kit/trust/bench-with-teams.js';
import { type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

/** A host that trusts root 3 and two teams, and has been restarted. */
async function settledBench(): Promise<TrustBench> {
  const bench = benchWithTeams();
  bench.repository.rotate('root');
  bench.repository.rotate('root');
  await bench.refresh();
  for (const team of ['dns', 'web']) assert.equal(await bench.find(team), 'trusted');
  bench.asked();
  bench.restart();
  return bench;
}

type Harm = (path: string) => void;

const harms: Readonly<Record<string, Harm>> = {
  'cut in half': (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
  emptied: (path) => truncateSync(path, 0),
  lost: (path) => rmSync(path),
  'filled with zeros': (path) => writeFileSync(path, Buffer.alloc(statSync(path).size)),
  'changed in one bit': (path) => {
    const bytes = readFileSync(path);
    const at = bytes.indexOf('"version"') + 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  },
  'as large as a disk': (path) => truncateSync(path, 50_000_000_000),
};

/** Asked for after the harm, besides the next root and the timestamp. */
const mended = {
  timestamp: [],
  snapshot: ['2.snapshot.json'],
  targets: ['2.targets.json'],
  dns: ['1.dns.json'],
} as const;

describe('a stored file that is damaged', () => {
  for (const [role, expected] of Object.entries(mended)) {
    it(`is fetched again, and nothing else: ${role}`, async () => {
      for (const [name, harm] of Object.entries(harms)) {
        using bench = await settledBench();
        const before = bench.storedBytes(role);
        harm(join(bench.trust, `${role}.json`));
        assert.equal(await bench.refresh(), 'trusted', name);
        for (const team of ['dns', 'web']) assert.equal(await bench.find(team), 'trusted', name);
        assert.deepEqual(bench.asked(), ['4.root.json', 'timestamp.json', ...expected], name);
        assert.deepEqual(bench.storedBytes(role), before, name);
      }
    });
  }

  it('is rebuilt from the history, without a request: root', async () => {
    for (const [name, harm] of Object.entries(harms)) {
      using bench = await settledBench();
      const before = bench.storedBytes('root');
      harm(join(bench.trust, 'root.json'));
      assert.equal(await bench.refresh(), 'trusted', name);
      assert.deepEqual(bench.asked(), ['4.root.json', 'timestamp.json'], name);
      assert.deepEqual(bench.storedBytes('root'), before, name);
    }
  });

  it('is restored when every file except the history is damaged', async () => {
    using bench = await settledBench();
    for (const role of ['root', ...Object.keys(mended)]) truncateSync(join(bench.trust, `${role}.json`), 7);
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(await bench.find('dns'), 'trusted');
    assert.deepEqual(bench.stored(), { root: 3, timestamp: 2, snapshot: 2, targets: 2, dns: 1, web: 1 });
  });

  it('is refused when it is an older valid file, as an older timestamp', async () => {
    using bench = await settledBench();
    const old = bench.storedBytes('snapshot');
    bench.repository.publish();
    await bench.refresh();
    writeFileSync(join(bench.trust, 'snapshot.json'), old);
    writeFileSync(join(bench.trust, 'targets.json'), bench.storedBytes('dns'));
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.asked().slice(-2), ['3.snapshot.json', '3.targets.json']);
    assert.equal(bench.stored()['snapshot'], 3);
  });

  it('is still no reason to trust a stranger: what replaces it must be signed', async () => {
    using bench = await settledBench();
    truncateSync(join(bench.trust, 'timestamp.json'), 0);
    bench.repository.alter('timestamp', (signed) => (signed.version = 0));
    assert.equal(await bench.refresh(), 'METADATA_MALFORMED');
    bench.repository.extraSignatures.set('timestamp', []);
    bench.repository.signers.set('timestamp', []);
    bench.repository.alter('timestamp', () => undefined);
    assert.equal(await bench.refresh(), 'SIGNATURE_THRESHOLD');
  });

  it('is damage, not an absence, where a directory stands in its place', async () => {
    using bench = await settledBench();
    rmSync(join(bench.trust, 'targets.json'));
    mkdirSync(join(bench.trust, 'targets.json'));
    assert.equal(await bench.refresh(), 'TRUST_STORE_DAMAGED');
    assert.deepEqual(bench.asked(), []);
  });

  it('may be a link to nowhere: it is replaced, and nothing is written through it', async () => {
    using bench = await settledBench();
    const elsewhere = join(bench.trust, '..', 'elsewhere');
    rmSync(join(bench.trust, 'targets.json'));
    symlinkSync(elsewhere, join(bench.trust, 'targets.json'));
    assert.equal(await bench.refresh(), 'trusted');
    assert.equal(statSync(elsewhere, { throwIfNoEntry: false }), undefined);
    assert.equal(bench.stored()['targets'], 2);
  });
});

describe('two clients on one store', () => {
  it('exclude each other by the lock: the second gets LOCK_HELD, and later begins where the first ended', async () => {
    using bench = trustBench();
    const request = {
      path: join(bench.trust, '..', 'lock'),
      waitMs: 0,
      clock: bench.clock,
      durable: createDurableFs(),
      code: 'LOCK_HELD',
    } as const;
    const first = await takeLock({ ...request, holder: 'agent' });
    assert.equal(await bench.refresh(), 'trusted');
    const held = await rejectsCode('LOCK_HELD', takeLock({ ...request, holder: 'pull' }));
    assert.match(String(held.facts['holder']), /^agent/);
    bench.repository.rotate('root');
    bench.repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    first.release();
    const second = await takeLock({ ...request, holder: 'pull' });
    bench.asked();
    bench.restart();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.asked(), ['3.root.json', 'timestamp.json']);
    second.release();
  });

  it('of different repositories never share trust: the other root is refused before a request', async () => {
    using ours = trustBench();
    using theirs = trustBench();
    await ours.refresh();
    ours.asked();
    ours.restart({ trustedRoot: theirs.repository.bootstrapRoot });
    assert.equal(await ours.refresh(), 'ROOT_NOT_LINKED');
    assert.deepEqual(ours.asked(), []);
    assert.deepEqual(ours.storedBytes('root'), ours.repository.bootstrapRoot);
  });
});
