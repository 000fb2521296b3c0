import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type TreeProblem, verifyTree } from '../../../../src/agent/generations/verify-tree.js';
import type { StagedBundle } from '../../../../src/agent/staging/staged-bundle.js';
import { unboundedPace } from '../../../../src/platform/time/rate-limit.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jail, stage } from '../../../kit/host/stage-harness.js';
import { type BundleFile, bundleTar, manifestOf } from '../../../kit/repository/archive-builder.js';

const files: readonly BundleFile[] = [
  { path: 'a', content: 'alpha' },
  { path: 'd/e/b', content: 'beta', executable: true },
  { path: 'd/c', content: 'x'.repeat(9_000_000) },
];

/** Decoded as UTF-8 it becomes two U+FFFD, and names no file. */
const strangeName = Buffer.from([0xff, 0xfe, ...Buffer.from('.lua')]);

interface Changed {
  readonly tree: string;
  readonly outside: string;
}

/** Stages the tree, lets the test change it, and verifies it in full. */
async function problemsAfter(
  change: (changed: Changed) => void,
  contents: 'digests' | 'sizes' = 'digests',
): Promise<TreeProblem[]> {
  using place = jail();
  const staged: StagedBundle = await stage(place, {
    tar: bundleTar(files),
    manifest: manifestOf(files),
    limits: { maxRatio: 1e9 },
  });
  change({ tree: staged.treePath, outside: place.dir.join('policy') });
  try {
    return await verifyTree(staged.treePath, staged.manifest, { mode: 0o644, contents });
  } finally {
    // Node removes neither names that are not UTF-8 nor paths beyond PATH_MAX.
    execFileSync('rm', ['-rf', staged.treePath]);
  }
}

/** Step by step, as no path leads there: 30 directories of 200 letters are beyond PATH_MAX. */
function digDeep(directory: string, levels: number): void {
  execFileSync(
    'sh',
    ['-c', `n=$(printf '%0200d' 0); for _ in $(seq ${levels}); do mkdir $n && cd -P $n || exit 1; done`],
    { cwd: directory },
  );
}

describe('verifyTree', () => {
  it('returns no problem for a newly staged tree, whatever its times are', longCase, async () => {
    assert.deepEqual(await problemsAfter(() => undefined), []);
    assert.deepEqual(await problemsAfter(({ tree }) => fs.utimesSync(join(tree, 'a'), 1, 1)), []);
  });

  const table: Readonly<Record<string, readonly [(changed: Changed) => void, TreeProblem[]]>> = {
    'other content of the same size': [
      ({ tree }) => fs.writeFileSync(join(tree, 'a'), 'ALPHA'),
      [{ path: 'a', kind: 'changed' }],
    ],
    'a byte more': [
      ({ tree }) => fs.appendFileSync(join(tree, 'd/c'), 'x'),
      [{ path: 'd/c', kind: 'changed' }],
    ],
    'a missing file': [({ tree }) => fs.rmSync(join(tree, 'd/c')), [{ path: 'd/c', kind: 'missing' }]],
    'a missing directory': [
      ({ tree }) => fs.rmSync(join(tree, 'd/e'), { recursive: true }),
      [{ path: 'd/e/b', kind: 'missing' }],
    ],
    'an extra file': [
      ({ tree }) => fs.writeFileSync(join(tree, 'd/.hidden'), ''),
      [{ path: 'd/.hidden', kind: 'extra' }],
    ],
    'an extra file with a name that is not UTF-8': [
      ({ tree }) => fs.writeFileSync(Buffer.concat([Buffer.from(join(tree, 'd/')), strangeName]), ''),
      [{ path: 'd/\ufffd\ufffd.lua', kind: 'extra' }],
    ],
    'an extra directory with a name that is not UTF-8, once': [
      ({ tree }) => {
        const strange = Buffer.concat([Buffer.from(`${tree}/`), strangeName]);
        fs.mkdirSync(strange);
        fs.writeFileSync(Buffer.concat([strange, Buffer.from('/hidden')]), '');
      },
      [{ path: '\ufffd\ufffd.lua', kind: 'extra' }],
    ],
    'an extra directory': [({ tree }) => fs.mkdirSync(join(tree, 'new')), [{ path: 'new', kind: 'extra' }]],
    'a link in place of a file': [
      ({ tree, outside }) => {
        fs.rmSync(join(tree, 'a'));
        fs.writeFileSync(join(outside, 'alpha'), 'alpha');
        fs.symlinkSync(join(outside, 'alpha'), join(tree, 'a'));
      },
      [{ path: 'a', kind: 'type' }],
    ],
    'a link in place of a directory': [
      ({ tree, outside }) => {
        fs.renameSync(join(tree, 'd/e'), join(outside, 'e'));
        fs.symlinkSync(join(outside, 'e'), join(tree, 'd/e'));
      },
      [
        { path: 'd/e', kind: 'type' },
        { path: 'd/e/b', kind: 'missing' },
      ],
    ],
    'a second name outside': [
      ({ tree, outside }) => fs.linkSync(join(tree, 'a'), join(outside, 'door')),
      [{ path: 'a', kind: 'type' }],
    ],
    'a directory in place of a file': [
      ({ tree }) => {
        fs.rmSync(join(tree, 'a'));
        fs.mkdirSync(join(tree, 'a'));
      },
      [{ path: 'a', kind: 'type' }],
    ],
    'a FIFO in place of a file': [
      ({ tree }) => {
        fs.rmSync(join(tree, 'a'));
        execFileSync('mkfifo', [join(tree, 'a')]);
      },
      [{ path: 'a', kind: 'type' }],
    ],
    'a world-writable file': [
      ({ tree }) => fs.chmodSync(join(tree, 'a'), 0o666),
      [{ path: 'a', kind: 'mode' }],
    ],
    'a set-uid bit': [
      ({ tree }) => fs.chmodSync(join(tree, 'd/e/b'), 0o4755),
      [{ path: 'd/e/b', kind: 'mode' }],
    ],
    'a lost executable bit': [
      ({ tree }) => fs.chmodSync(join(tree, 'd/e/b'), 0o644),
      [{ path: 'd/e/b', kind: 'mode' }],
    ],
    'an open directory': [({ tree }) => fs.chmodSync(join(tree, 'd'), 0o777), [{ path: 'd', kind: 'mode' }]],
    'an open root': [({ tree }) => fs.chmodSync(tree, 0o777), [{ path: '.', kind: 'mode' }]],
    'no tree at all': [({ tree }) => fs.rmSync(tree, { recursive: true }), [{ path: '.', kind: 'missing' }]],
    'a link in place of the tree': [
      ({ tree, outside }) => {
        fs.rmSync(tree, { recursive: true });
        fs.symlinkSync(outside, tree);
      },
      [{ path: '.', kind: 'type' }],
    ],
  };
  for (const [name, [change, expected]] of Object.entries(table)) {
    it(`finds ${name}`, async () => {
      assert.deepEqual(await problemsAfter(change), expected);
    });
  }

  it('reads no contents in a scan of sizes', longCase, async () => {
    const same = ({ tree }: Changed): void => fs.writeFileSync(join(tree, 'a'), 'ALPHA');
    const longer = ({ tree }: Changed): void => fs.writeFileSync(join(tree, 'a'), 'longer');
    assert.deepEqual(await problemsAfter(same, 'sizes'), []);
    assert.deepEqual(await problemsAfter(longer, 'sizes'), [{ path: 'a', kind: 'changed' }]);
  });

  it('finds another group', async (t) => {
    if (process.getuid?.() !== 0) return t.skip('needs root');
    using place = jail();
    const input = { tar: bundleTar(files), manifest: manifestOf(files), limits: { maxRatio: 1e9 } };
    const { treePath, manifest } = await stage(place, { ...input, options: { groupId: 4242 } });
    const options = { mode: 0o644, groupId: 4242, contents: 'sizes' } as const;
    assert.deepEqual(await verifyTree(treePath, manifest, options), []);
    fs.chownSync(join(treePath, 'a'), 0, 0);
    assert.deepEqual(await verifyTree(treePath, manifest, options), [{ path: 'a', kind: 'owner' }]);
  });

  it('finds a change beside directories deeper than the longest possible path', async () => {
    const problems = await problemsAfter(({ tree }) => {
      fs.writeFileSync(join(tree, 'a'), 'ALPHA');
      digDeep(tree, 30);
    });
    assert.deepEqual(
      problems.filter(({ kind }) => kind !== 'extra'),
      [{ path: 'a', kind: 'changed' }],
    );
    assert.equal(problems.length > 1, true);
  });

  it('lists at most 1000 problems', async () => {
    const flood = ({ tree }: Changed): void => {
      for (let index = 0; index < 1200; index += 1) fs.writeFileSync(join(tree, `x${index}`), '');
    };
    assert.equal((await problemsAfter(flood)).length, 1000);
  });

  it('ends when it is interrupted', async () => {
    using place = jail();
    const input = { tar: bundleTar(files), manifest: manifestOf(files), limits: { maxRatio: 1e9 } };
    const { treePath, manifest } = await stage(place, input);
    const pace = unboundedPace(AbortSignal.abort());
    await assert.rejects(verifyTree(treePath, manifest, { mode: 0o644, contents: 'digests', pace }), {
      code: 'INTERRUPTED',
    });
  });
});
