// Deltas in the publisher's commands: `writ publish` makes them, `writ inspect` shows them, `writ repo check` applies them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { listOf, withLine } from '../../../kit/delta/list-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

interface ShownDelta {
  readonly from: string;
  readonly digest: string;
  readonly bytes: number;
}

describe('writ publish', longCase, () => {
  it('makes deltas unless --deltas is 0, and inspect and repo check verify them', async () => {
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
    assert.match((await run('repo', 'check', ...places)).stdout, /^INTACT .*, 1 archive, .*, 1 delta$/m);
    assert.equal(jsonOf(await run('repo', 'check', ...places, '--json'))['deltas'], 1);

    const before = fs.readdirSync(join(repository, 'targets/dns'));
    const preview = await publish('three', '--dry-run');
    assert.equal((preview['deltas'] as ShownDelta[]).length, 2);
    assert.deepEqual(fs.readdirSync(join(repository, 'targets/dns')), before);

    const targets = join(repository, 'targets/dns');
    const [name = ''] = fs.readdirSync(targets).filter((one) => one.endsWith('.delta'));
    const ofDelta = jsonOf(await run('inspect', join(targets, name), '--json'));
    assert.equal(ofDelta['outcome'], 'intact');
    const listed = ofDelta['listed'] as Record<string, unknown>;
    assert.deepEqual(
      [listed['serial'], listed['fromSerial'], listed['from'], listed['isTried']],
      [2, 1, delta.from, true],
    );
    assert.equal((listed['made'] as { files: number }).files, 1);
    assert.match(
      (await run('inspect', join(targets, name))).stdout,
      /applied to its base it produces the signed tree/,
    );
    fs.copyFileSync(join(targets, name), dir.join('lone.delta'));
    assert.equal(jsonOf(await run('inspect', dir.join('lone.delta'), '--json'))['listed'], null);
    fs.writeFileSync(dir.join('other.delta'), brotliCompressSync('no delta'));
    assert.match((await runWrit(['inspect', dir.join('other.delta')])).stderr, /DELTA_MALFORMED/);

    assert.deepEqual((await publish('three', '--deltas', '0'))['deltas'], []);
    const withdrawn = jsonOf(await run('withdraw', ...places, '--bundle', 'dns', '--serial', '3', '--json'));
    const [channel] = withdrawn['channels'] as { deltas: ShownDelta[] }[];
    assert.equal(channel?.deltas.length, 2);
    assert.deepEqual(channel?.deltas[1], delta);
    assert.equal(
      (await runWrit(['publish', dir.join('source-1'), ...places, '--bundle', 'dns', '--deltas', '9']))
        .exitCode,
      2,
    );
  });
});
