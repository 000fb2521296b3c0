// The deltas between two releases: as small as the format permits for few changes, and correct for all changes.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { planDelta } from '../../../../src/core/delta/delta-writer.js';
import { assertNoSquare } from '../../../kit/assert/growth.js';
import { caseSeed, type Seeded, seeded, testCases, testSeed } from '../../../kit/assert/seeded.js';
import { applyDelta, deltaOf, releaseOf, type Tree, type TreeRelease } from '../../../kit/delta/delta-kit.js';

function lines(count: number, seed = 1): string {
  const random = seeded(seed);
  return Array.from({ length: count }, () => `host-${random.int(1e9).toString(36)}.example CNAME .\n`).join(
    '',
  );
}

function assertLeads(base: TreeRelease, next: TreeRelease, delta: Buffer = deltaOf(base, next)): string[] {
  const { manifest, made, events } = applyDelta(base, next, { delta });
  assert.deepEqual(manifest, next.manifest);
  const known = new Set(base.manifest.files.map(({ digest }) => digest));
  const expected = next.manifest.files.filter(({ digest }) => !known.has(digest)).map(({ path }) => path);
  assert.deepEqual(Object.keys(made), expected);
  for (const path of expected) assert.equal(made[path], next.contents.get(path)?.toString('latin1'));
  return [...events];
}

describe('a delta of one changed line', () => {
  const text = lines(20_000);
  const middle = text.indexOf('\n', text.length / 2) + 1;
  const changed = `${text.slice(0, middle)}host-new.example CNAME .\n${text.slice(middle)}`;

  it('copies the bytes before and after it', () => {
    const [base, next] = [releaseOf({ list: text, other: 'x' }), releaseOf({ list: changed, other: 'x' })];
    const events = assertLeads(base, next);
    assert.deepEqual(
      events.map((one) => one.split(' ')[0]),
      ['list', 'copy', 'insert', 'copy', 'close'],
    );
    assert.ok(brotliCompressSync(deltaOf(base, next)).length < 200);
  });

  it('is deterministic', () => {
    const [base, next] = [releaseOf({ list: text }), releaseOf({ list: changed })];
    assert.deepEqual(deltaOf(base, next), deltaOf(base, next));
  });
});

describe('a delta of many changes', () => {
  it('copies the content between them, and moved content', () => {
    const text = lines(20_000);
    const rows = text.split('\n');
    for (let at = 100; at < 20_000; at += 1000) rows[at] = `changed-${at}.example`;
    const moved = [...rows.slice(10_000), ...rows.slice(0, 10_000)].join('\n');
    const [base, next] = [releaseOf({ list: text }), releaseOf({ list: moved })];
    const delta = deltaOf(base, next);
    assertLeads(base, next, delta);
    assert.ok(delta.length < 5000, `${delta.length}`);
  });

  it('is not much longer than the new file without common content', () => {
    const [base, next] = [releaseOf({ list: lines(2000, 1) }), releaseOf({ list: lines(2000, 2) })];
    const delta = deltaOf(base, next);
    assertLeads(base, next, delta);
    const whole = next.contents.get('list')?.length ?? 0;
    assert.ok(delta.length < whole + next.manifestBytes.length + 100);
  });
});

describe('the files in a delta', () => {
  const planned = (before: Tree, after: Tree): string[] =>
    planDelta(releaseOf(before).manifest, releaseOf(after).manifest).map(
      ({ file, from }) => `${file.path} < ${from?.path}`,
    );

  it('are files with content that the base does not have, and no moved, copied or removed files', () => {
    const before = { a: 'one', b: 'two', c: 'three' };
    assert.deepEqual(planned(before, { a: 'one', 'd/e': 'two', f: 'one' }), []);
    assert.deepEqual(planned(before, { a: 'two', b: 'new', g: 'newer' }), ['b < b', 'g < undefined']);
  });

  it('have a removed file as their base if the paths differ only in digits', () => {
    const before = { 'block-20261122.rpz': 'old', 'keep-1': 'x' };
    const after = { 'block-20261123.rpz': 'new', 'keep-1': 'x', 'keep-2': 'y' };
    assert.deepEqual(planned(before, after), [
      'block-20261123.rpz < block-20261122.rpz',
      'keep-2 < undefined',
    ]);
  });

  it('may be an empty file, or none besides the manifest', () => {
    assert.deepEqual(assertLeads(releaseOf({ a: 'x' }), releaseOf({ a: 'x', b: '' })), [
      'b < nothing',
      'close',
    ]);
    assert.deepEqual(assertLeads(releaseOf({ a: 'x', b: 'y' }), releaseOf({ c: 'x' })), []);
  });
});

describe('a delta of random edits', () => {
  it('produces the new release', () => {
    const seed = testSeed();
    for (let index = 0; index < testCases(150); index += 1) {
      const random = seeded(caseSeed(seed, index));
      const before = randomTree(random);
      const [base, next] = [releaseOf(before), releaseOf(edited(before, random))];
      try {
        assertLeads(base, next);
      } catch (error) {
        throw new Error(`seed ${seed}, case ${index}`, { cause: error });
      }
    }
  });

  it('takes time that grows with the files and not with their square', () => {
    // The worst case of the matcher: all content is similar, and all of it has moved.
    assertNoSquare(8000, (count) => {
      const row = 'a'.repeat(63);
      const base = releaseOf({ a: `${row}b`.repeat(count), z: 'z'.repeat(64 * count) });
      const next = releaseOf({
        a: `${row}c${row}b`.repeat(count / 2),
        z: `y${'z'.repeat(63)}`.repeat(count),
      });
      return () => applyDelta(base, next, { delta: deltaOf(base, next) });
    });
  });
});

function randomTree(random: Seeded): Record<string, Buffer> {
  const count = 1 + random.int(5);
  const bytes = (length: number, letters: number): Buffer =>
    Buffer.from(Array.from({ length }, () => 97 + random.int(letters)));
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      random.pick(['a', 'b/c', 'd']) + index,
      bytes(random.int(random.pick([1, 40, 400, 6000])), random.pick([1, 2, 26])),
    ]),
  );
}

function edited(tree: Record<string, Buffer>, random: Seeded): Tree {
  const next: Record<string, Buffer> = { ...tree };
  for (const [path, before] of Object.entries(tree)) {
    let content: Buffer = before;
    for (let edit = random.int(5); edit > 0; edit -= 1) {
      const [from, to] = [random.int(content.length + 1), random.int(content.length + 1)].sort(
        (a, b) => a - b,
      );
      const [head, middle, tail] = [
        content.subarray(0, from),
        content.subarray(from, to),
        content.subarray(to),
      ];
      const noise = createHash('sha256')
        .update(`${random.int(1e9)}`)
        .digest()
        .subarray(0, random.int(32));
      content = Buffer.concat(
        random.pick([
          [head, noise, tail],
          [head, middle, noise, tail],
          [middle, head, tail],
          [head, middle, middle, tail],
          [head, tail],
        ]),
      );
    }
    if (random.once(6)) delete next[path];
    if (random.once(6)) next[`moved/${path}`] = content;
    else if (!random.once(3)) next[path] = content;
  }
  return next;
}
