// Deltas as a publisher sees them: made by `writ publish`, shown by `writ inspect`, tried by `writ repo check`.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { listOf, withLine } from '../../../kit/delta/list-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

interface ShownDelta {
  readonly from: string;
  readonly digest: string;
  readonly bytes: number;
}

describe('writ publish', () => {
  it('makes deltas unless told otherwise, and inspect and repo check know them', async () => {
    using dir = tempDir();
    const [repository, keys] = [dir.join('repo'), dir.join('keys')];
    const places = ['--repository', repository, '--keys', keys];
    const run = async (...args: string[]) => {
      const result = await runWrit(args);
      assert.equal(result.exitCode, 0, result.stderr);
      return result;
    };
    const list = listOf(2000);
    let sources = 0;
    const publish = async (line: string, ...more: string[]) => {
      sources += 1;
      const source = writeTree(dir.join(`source-${sources}`), { list: withLine(list, line) });
      return jsonOf(await run('publish', source, ...places, '--bundle', 'dns', '--json', ...more));
    };
    await run('init', ...places, '--no-passphrase');
    const first = await publish('one');
    assert.deepEqual(first['deltas'], []);
    const [delta, ...others] = (await publish('two'))['deltas'] as ShownDelta[];
    assert.deepEqual(others, []);
    assert.equal(delta?.from, first['manifestDigest']);
    assert.ok(delta !== undefined && delta.bytes < 300);

    const shown = await run('inspect', repository);
    assert.match(shown.stdout, /update/);
    assert.match(shown.stdout, new RegExp(`${delta.bytes} B x1`));
    const inspected = jsonOf(await run('inspect', repository, '--json'));
    assert.deepEqual((inspected['releases'] as { deltas: unknown }[])[0]?.deltas, [delta]);
    assert.match((await run('repo', 'check', ...places)).stdout, /^WHOLE/m);

    assert.deepEqual((await publish('three', '--deltas', '0'))['deltas'], []);
    assert.equal(
      (await runWrit(['publish', dir.join('source-1'), ...places, '--bundle', 'dns', '--deltas', '9']))
        .exitCode,
      2,
    );
  });
});
