import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { targetBytes } from '../../kit/trust/target-bytes.js';
import { trustBench } from '../../kit/trust/trust-bench.js';

const content = Buffer.alloc(3000, 'x');

describe('a target of any publisher', () => {
  it('is found and downloaded in each role that lists it, with any name', async () => {
    using bench = trustBench();
    const { repository } = bench;
    repository.delegate('targets', { name: 'team', paths: ['team/*'] });
    repository.addTarget('team/file', content, { listedBy: 'team' });
    for (const name of ['../x', '.', '.hidden']) repository.addTarget(name, content);
    repository.publish();
    await bench.refresh();
    for (const name of ['team/file', '../x', '.', '.hidden']) {
      assert.deepEqual(await targetBytes(bench.client, name), content, name);
    }
    assert.equal(repository.files.get('targets/x'), undefined);
  });

  it('must have its signed length and digest', async () => {
    using bench = trustBench();
    const { repository } = bench;
    repository.addTarget('file', content);
    repository.publish();
    await bench.refresh();
    const [location] = [...repository.files.keys()].filter((name) => name.startsWith('targets/'));
    for (const [bytes, code] of [
      [Buffer.alloc(3000, 'y'), 'DOWNLOAD_DIGEST'],
      [Buffer.alloc(3001, 'x'), 'DOWNLOAD_TOO_LARGE'],
      [Buffer.alloc(2999, 'x'), 'DOWNLOAD_TRUNCATED'],
    ] as const) {
      repository.files.set(location!, bytes);
      await rejectsCode(code, targetBytes(bench.client, 'file'));
    }
  });

  it('is refused when it is not listed, or has no known digest', async () => {
    using bench = trustBench();
    const { repository } = bench;
    repository.addTarget('md5', content, { digests: ['md5'] });
    repository.publish();
    await bench.refresh();
    await rejectsCode('TARGET_UNKNOWN', targetBytes(bench.client, 'nowhere'));
    await rejectsCode('TARGET_MALFORMED', targetBytes(bench.client, 'md5'));
  });
});
