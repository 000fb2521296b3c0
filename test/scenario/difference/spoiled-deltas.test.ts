// Deltas that are not what they ought to be, by accident or by whoever holds a key, and bases that were changed: the release
// comes all the same, as its archive, in the same cycle; nothing is remembered against it, and the result has a word of it.
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
import { look } from '../../kit/host/repair-bench.js';
import type { DeltaMaker } from '../../kit/host/test-host.js';
import { stampedFiles } from '../../kit/sources/stamped-files.js';

async function assertArchiveTaken(
  bench: DifferenceBench,
  { word, fetched }: { word: string; fetched: string[] },
): Promise<void> {
  const { test } = bench;
  const { result, events } = await test.sync();
  assert.deepEqual([result.outcome, result.problems], ['activated', []]);
  assert.deepEqual(warningsOf(result), [word]);
  assert.deepEqual(bench.fetched(), fetched);
  assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  assert.deepEqual(await look(test.host), []);
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

/** What the server has in place of what was signed. */
const served: Readonly<Record<string, DeltaMaker>> = {
  nothing: { serve: () => undefined },
  'half of it': { serve: (delta) => tail(delta, 40) },
  'a flipped bit': { serve: (delta) => Buffer.from(delta.map((byte, at) => (at === 50 ? byte ^ 1 : byte))) },
  'other bytes behind it': { serve: (delta) => Buffer.concat([delta, Buffer.from('x')]) },
};

/** Instructions for the new manifest, and then what a test wants. */
function withManifest(next: PublishedTree, ...rest: Buffer[]): Buffer {
  const length = next.manifestBytes.length;
  const insert = encodeInstruction({ kind: 'insert', offset: 0, length }, 0);
  return compress(Buffer.concat([deltaMagic, insert, next.manifestBytes, ...rest]));
}

/** What is signed, by whoever holds the key of a team: the digest is right, what is inside is not. */
const signed: Readonly<Record<string, DeltaMaker['make']>> = {
  'no Brotli': () => Buffer.from('neither this nor that'),
  nothing: () => Buffer.from([0x3b]),
  'data behind the stream': (base, next) =>
    Buffer.concat([compress(plainDelta(base, next)), Buffer.from('!')]),
  'half of the instructions': (base, next) => compress(tail(plainDelta(base, next), 20)),
  'the way to another release': (base) => compress(plainDelta(base, base)),
  'a bomb': () => compress(Buffer.alloc(100_000_000)),
  'a bomb of copies': (_, next) =>
    withManifest(
      next,
      encodeNumber(1),
      ...Array.from({ length: 5000 }, () =>
        encodeInstruction({ kind: 'copy', offset: 0, length: 1_000_000 }, 0),
      ),
    ),
  'a copy from behind the end': (_, next) =>
    withManifest(
      next,
      encodeNumber(4),
      encodeInstruction({ kind: 'copy', offset: 30_000_000, length: 40 }, 0),
    ),
  'a copy from before the start': (_, next) =>
    withManifest(next, encodeNumber(4), encodeInstruction({ kind: 'copy', offset: 0, length: 40 }, 400)),
  'a base that is not there': (_, next) => withManifest(next, encodeNumber(9999)),
  'a manifest alone': (_, next) => withManifest(next),
};

describe('a delta that the server has not as it was signed', () => {
  for (const [name, deltas] of Object.entries(served)) {
    it(`is left for the archive: ${name}`, async () => {
      using bench = await differenceBench({ deltas });
      await bench.publish(2);
      const { result, events } = await bench.test.sync();
      assert.deepEqual(
        [result.outcome, warningsOf(result), result.problems],
        ['activated', ['DELTA_FAILED'], []],
      );
      assert.equal(bench.fetched().at(-1), 'archive');
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
      assert.deepEqual(await look(bench.test.host), []);
      assert.match(JSON.stringify(events), /by its archive|B"/);
    });
  }
});

describe('a delta that is signed and wrong', () => {
  for (const [name, make] of Object.entries(signed)) {
    it(`is left for the archive: ${name}`, async () => {
      using bench = await differenceBench({ deltas: { bases: 1, ...(make ? { make } : {}) } });
      await bench.publish(2);
      await assertArchiveTaken(bench, { word: 'DELTA_FAILED', fetched: ['delta', 'archive'] });
    });
  }

  it('is left for the archive where its bytes make another file', async () => {
    const make = (base: PublishedTree, next: PublishedTree): Buffer => {
      const plain = plainDelta(base, next);
      const at = plain.lastIndexOf('version: 2');
      plain.write('3', at + 9);
      return compress(plain);
    };
    using bench = await differenceBench({ deltas: { make } });
    await bench.publish(2);
    await assertArchiveTaken(bench, { word: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('makes no tree that exceeds the ratio of the archive of the same release', async () => {
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
    it(`makes no tree that exceeds ${limit}`, async () => {
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

  it('makes no tree whose stamps are wrong', async () => {
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

  it('does nothing that the archive of the same release could not: what is refused is refused', async () => {
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

/** What became of a file of the active tree: `list.rpz` is changed by the release, `rules/3` is not. */
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
      it(`is left for the archive: ${name} for ${file}`, async () => {
        using bench = await differenceBench();
        harm(bench.tree(file));
        await bench.publish(2);
        await assertArchiveTaken(bench, { word: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
      });
    }
  }

  it('is left for the archive where it changes while it is read', async () => {
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
    await assertArchiveTaken(bench, { word: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('is left for the archive where the disk cannot read it', async () => {
    using bench = await differenceBench({
      observer: {
        before: ({ op }) => {
          if (op === 'stage.copy') throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'read' });
        },
      },
    });
    await bench.publish(2);
    await assertArchiveTaken(bench, { word: 'DELTA_MISMATCH', fetched: ['delta', 'archive'] });
  });

  it('is not asked for what is kept no more: the archive comes without a word', async () => {
    using bench = await differenceBench();
    fs.rmSync(bench.kept('archive.tar.br'));
    await bench.publish(2);
    const result = await bench.test.pull();
    assert.deepEqual([result.outcome, result.warnings, bench.fetched()], ['activated', [], ['archive']]);
  });

  it('has its rights of its own: what a hand gave the old file is not copied', async () => {
    using bench = await differenceBench();
    fs.chmodSync(bench.tree('rules/3'), 0o4777);
    await bench.update(2);
    assert.deepEqual(bench.fetched(), ['delta']);
    const modes = new Set(treeOf(bench.tree()).map((line) => line.split(' ')[1]));
    assert.deepEqual([...modes].sort(), ['100644', '100755', '40755']);
  });
});

describe('a disk without room', () => {
  for (const label of ['stage.copy', 'stage.file:write', 'fetch.archive:write']) {
    it(`is no reason for the archive, which needs more: ${label}`, async () => {
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
