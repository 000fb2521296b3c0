// Wrong deltas, by accident or by an attacker with a key, and changed bases: the host activates the release by its archive in the
// same cycle, records no refusal, and warns in the result.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { deltaMagic, encodeInstruction, encodeNumber } from '../../../src/core/delta/delta-format.js';
import { unlessRefused } from '../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../src/core/limits.js';
import {
  type DifferenceBench,
  differenceBench,
  filesOf,
  treeOf,
  warningsOf,
} from '../../kit/delta/difference-bench.js';
import { compress, type PublishedTree, plainDelta } from '../../kit/delta/served-deltas.js';
import { flipBit, putFifo } from '../../kit/disk/damage-file.js';
import { findDamage } from '../../kit/host/repair-bench.js';
import type { DeltaMaker } from '../../kit/host/test-host.js';
import { stampedFiles } from '../../kit/sources/stamped-files.js';

async function assertArchiveTaken(
  bench: DifferenceBench,
  { code, fetched }: { code: string; fetched: string[] },
): Promise<void> {
  const { test } = bench;
  const { result, events } = await test.sync();
  assert.deepEqual([result.outcome, result.problems], ['activated', []]);
  assert.deepEqual(warningsOf(result), [code]);
  assert.deepEqual(bench.fetched(), fetched);
  assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  assert.deepEqual(await findDamage(test.host), []);
  assert.equal(JSON.stringify(test.host.refusals.read()).includes('access'), false);
  assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
  assert.deepEqual(openBelow(test.directory), []);
  assert.ok(fs.existsSync(bench.kept('archive.tar.br')));
  const failed = events.filter((one) => one.type === 'step.finished' && one.verdict === 'fail');
  assert.deepEqual(failed, []);
}

/** @returns files of this process that are open below a directory */
function openBelow(directory: string): string[] {
  const descriptors = fs.readdirSync('/proc/self/fd');
  const files = descriptors.map((one) => unlessRefused(() => fs.readlinkSync(`/proc/self/fd/${one}`)) ?? '');
  return files.filter((path) => path.startsWith(`${directory}/`));
}

const tail = (bytes: Buffer, count: number): Buffer => bytes.subarray(0, bytes.length - count);

/** The server sends these bytes instead of the signed delta. */
const served: Readonly<Record<string, DeltaMaker>> = {
  nothing: { serve: () => undefined },
  'half of it': { serve: (delta) => tail(delta, 40) },
  'a flipped bit': { serve: (delta) => Buffer.from(delta.map((byte, at) => (at === 50 ? byte ^ 1 : byte))) },
  'other bytes after it': { serve: (delta) => Buffer.concat([delta, Buffer.from('x')]) },
};

/** Instructions for the new manifest, followed by those of a test. */
function withManifest(next: PublishedTree, ...rest: Buffer[]): Buffer {
  const length = next.manifestBytes.length;
  const insert = encodeInstruction({ kind: 'insert', offset: 0, length }, 0);
  return compress(Buffer.concat([deltaMagic, insert, next.manifestBytes, ...rest]));
}

/** Signed deltas of an attacker with the key of a team: their digest is right, their content is not. */
const signed: Readonly<Record<string, DeltaMaker['make']>> = {
  'no Brotli': () => Buffer.from('neither this nor that'),
  nothing: () => Buffer.from([0x3b]),
  'data after the stream': (base, next) =>
    Buffer.concat([compress(plainDelta(base, next)), Buffer.from('!')]),
  'half of the instructions': (base, next) => compress(tail(plainDelta(base, next), 20)),
  'the delta of another release': (base) => compress(plainDelta(base, base)),
  'a bomb': () => compress(Buffer.alloc(100_000_000)),
  'a bomb of copies': (_, next) =>
    withManifest(
      next,
      encodeNumber(1),
      ...Array.from({ length: 5000 }, () =>
        encodeInstruction({ kind: 'copy', offset: 0, length: 1_000_000 }, 0),
      ),
    ),
  'a copy from after the end': (_, next) =>
    withManifest(
      next,
      encodeNumber(4),
      encodeInstruction({ kind: 'copy', offset: 30_000_000, length: 40 }, 0),
    ),
  'a copy from before the start': (_, next) =>
    withManifest(next, encodeNumber(4), encodeInstruction({ kind: 'copy', offset: 0, length: 40 }, 400)),
  'a base that does not exist': (_, next) => withManifest(next, encodeNumber(9999)),
  'a manifest alone': (_, next) => withManifest(next),
};

describe('a delta that differs on the server from the signed one', () => {
  for (const [name, deltas] of Object.entries(served)) {
    it(`is replaced by the archive: ${name}`, async () => {
      using bench = await differenceBench({ deltas });
      await bench.publish(2);
      const { result, events } = await bench.test.sync();
      assert.deepEqual(
        [result.outcome, warningsOf(result), result.problems],
        ['activated', ['DELTA_FAILED'], []],
      );
      assert.equal(bench.fetched().at(-1), 'archive');
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
      assert.deepEqual(await findDamage(bench.test.host), []);
      assert.match(JSON.stringify(events), /by its archive|B"/);
    });
  }
});

describe('a delta that is wrong and signed', () => {
  for (const [name, make] of Object.entries(signed)) {
    it(`is replaced by the archive: ${name}`, async () => {
      using bench = await differenceBench({ deltas: { bases: 1, ...(make ? { make } : {}) } });
      await bench.publish(2);
      await assertArchiveTaken(bench, { code: 'DELTA_FAILED', fetched: ['delta', 'archive'] });
    });
  }

  it('is replaced by the archive when it builds another file', async () => {
    const make = (base: PublishedTree, next: PublishedTree): Buffer => {
      const plain = plainDelta(base, next);
      const at = plain.lastIndexOf('version: 2');
      plain.write('3', at + 9);
      return compress(plain);
    };
    using bench = await differenceBench({ deltas: { make } });
    await bench.publish(2);
    await assertArchiveTaken(bench, { code: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('builds no tree that exceeds the ratio of the archive of the same release', async () => {
    const zeros = (bytes: number): string => '0'.repeat(bytes);
    const limits = { ...defaultArchiveLimits, maxRatio: 100 };
    using bench = await differenceBench({ config: { limits } });
    await bench.publish(2, { ...filesOf(2), zeros: zeros(1_200_000) });
    assert.equal((await bench.test.pull()).outcome, 'activated');
    await bench.publish(3, { ...filesOf(3), zeros: zeros(3_000_000) });
    bench.fetched();
    const result = await bench.test.pull();
    assert.deepEqual(
      [result.bundles[0]?.problem?.code, warningsOf(result)],
      ['ARCHIVE_LIMIT', ['DELTA_FAILED']],
    );
    assert.equal(result.warnings[0]?.facts?.['because'], 'ARCHIVE_LIMIT');
    assert.deepEqual(bench.fetched(), ['delta', 'archive']);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
  });

  const limits = {
    maxEntries: 11,
    maxFileBytes: 10_000,
    maxTreeBytes: 20_000,
    maxDepth: 1,
    maxPathBytes: 6,
    maxNameBytes: 7,
  };
  for (const [limit, value] of Object.entries(limits)) {
    it(`builds no tree that exceeds ${limit}`, async () => {
      using bench = await differenceBench();
      await bench.publish(2);
      const { config } = bench.test.host;
      Object.assign(config, { limits: { ...config.limits, [limit]: value } });
      const { bundles, warnings } = await bench.test.pull();
      const code = bundles[0]?.problem?.code;
      assert.match(code ?? '', /^(ARCHIVE_LIMIT|MANIFEST_MALFORMED)$/);
      assert.deepEqual([warnings[0]?.code, warnings[0]?.facts?.['because']], ['DELTA_FAILED', code]);
      assert.deepEqual(bench.fetched(), ['delta', 'archive']);
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 1\n');
    });
  }

  it('builds no tree with wrong stamps', async () => {
    using bench = await differenceBench();
    const { files, stamped } = stampedFiles({ ...filesOf(2), zone: '; @writ.serial@' }, 2);
    const changed = { ...files, 'policy.yaml': 'version: 3\n' };
    await bench.test.publish('access', changed, { serial: 2, stamped });
    const result = await bench.test.pull();
    const because = result.warnings[0]?.facts?.['because'];
    assert.deepEqual([result.bundles[0]?.problem?.code, because], ['MANIFEST_MISMATCH', 'MANIFEST_MISMATCH']);
    assert.deepEqual(bench.fetched(), ['delta', 'archive']);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('is refused when the archive of the same release would be refused', async () => {
    using bench = await differenceBench();
    await bench.publish(2);
    const { targets } = bench.test.repository.targets;
    targets['access/stable.tar.br'].custom.writ.serial = 1;
    bench.test.repository.publish();
    const result = await bench.test.pull();
    assert.equal(result.bundles[0]?.problem?.code, 'SERIAL_REUSED');
    assert.deepEqual(bench.fetched(), []);
  });
});

/** Changes to a file of the active tree: the release changes `list.rpz`, and not `rules/3`. */
const harms: Readonly<Record<string, (path: string) => void>> = {
  'a flipped bit': (path) => flipBit(path, 100),
  'one byte more': (path) => fs.appendFileSync(path, 'x'),
  'half of it': (path) => fs.truncateSync(path, 300),
  'no file': (path) => fs.rmSync(path),
  'a FIFO': putFifo,
  'a directory': (path) => {
    fs.rmSync(path);
    fs.mkdirSync(path);
  },
  'a link to a secret': (path) => {
    fs.rmSync(path);
    fs.symlinkSync('/etc/passwd', path);
  },
  'a device': (path) => {
    fs.rmSync(path);
    fs.symlinkSync('/dev/zero', path);
  },
};

describe('a base that was changed', () => {
  for (const file of ['list.rpz', 'rules/3']) {
    for (const [name, harm] of Object.entries(harms)) {
      it(`makes the host use the archive: ${name} for ${file}`, async () => {
        using bench = await differenceBench();
        harm(bench.tree(file));
        await bench.publish(2);
        await assertArchiveTaken(bench, { code: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
      });
    }
  }

  it('makes the host use the archive when it changes during the read', async () => {
    const change = { path: '' };
    using bench = await differenceBench({
      observer: {
        before: ({ op, path }) => {
          if (op === 'stage.copy' && path.endsWith('rules/2')) fs.truncateSync(change.path, 10);
        },
      },
    });
    change.path = bench.tree('rules/2');
    await bench.publish(2);
    await assertArchiveTaken(bench, { code: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('makes the host use the archive when the disk cannot read it', async () => {
    using bench = await differenceBench({
      observer: {
        before: ({ op }) => {
          if (op === 'stage.copy') throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'read' });
        },
      },
    });
    await bench.publish(2);
    await assertArchiveTaken(bench, { code: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('without its retained copy makes the host use the archive without a warning', async () => {
    using bench = await differenceBench();
    fs.rmSync(bench.kept('archive.tar.br'));
    await bench.publish(2);
    const result = await bench.test.pull();
    assert.deepEqual([result.outcome, result.warnings, bench.fetched()], ['activated', [], ['archive']]);
  });

  it('does not pass a changed file mode to the new tree', async () => {
    using bench = await differenceBench();
    fs.chmodSync(bench.tree('rules/3'), 0o4777);
    await bench.update(2);
    assert.deepEqual(bench.fetched(), ['delta']);
    const modes = new Set(treeOf(bench.tree()).map((line) => line.split(' ')[1]));
    assert.deepEqual([...modes].sort(), ['100644', '100755', '40755']);
  });
});

describe('a disk without free space', () => {
  for (const label of ['stage.copy', 'stage.file:write', 'fetch.archive:write']) {
    it(`does not make the host use the archive, which needs more space: ${label}`, async () => {
      let isFull = false;
      using bench = await differenceBench({
        observer: {
          before: ({ op }) => {
            if (isFull && op === label) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
          },
        },
      });
      isFull = true;
      await bench.publish(2);
      const result = await bench.test.pull();
      assert.deepEqual([result.bundles[0]?.problem?.code, result.warnings], ['DISK_FULL', []]);
      assert.deepEqual(bench.fetched(), ['delta']);
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 1\n');
      isFull = false;
      assert.equal((await bench.test.pull()).outcome, 'activated');
      assert.deepEqual(bench.fetched(), ['delta']);
    });
  }
});
