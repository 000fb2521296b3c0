import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { downloadTarget } from '../../../src/trust/download-target.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { trustBench } from '../../kit/trust/trust-bench.js';

function downloads() {
  const bench = trustBench();
  const dir = tempDir();
  mkdirSync(dir.join('out'));
  const directory = dir.join('out');
  return {
    bench,
    directory,
    get: (path: string, durable = createDurableFs()) =>
      downloadTarget(path, { client: bench.client, directory, durable }),
    names: () => readdirSync(directory).sort(),
    [Symbol.dispose]: () => {
      dir[Symbol.dispose]();
      bench[Symbol.dispose]();
    },
  };
}

const content = Buffer.alloc(3000, 'x');

describe('downloadTarget', () => {
  it('fetches a target once, wherever it is listed, and again when it is damaged', async () => {
    using it = downloads();
    const { repository } = it.bench;
    repository.delegate('targets', { name: 'team', paths: ['team/*'] });
    repository.addTarget('team/file', content, { listedBy: 'team' });
    repository.publish();
    await it.bench.refresh();
    const first = await it.get('team/file');
    assert.equal(first.kind, 'fetched');
    assert.deepEqual(readFileSync(first.path), content);
    assert.deepEqual(it.names(), ['team%2Ffile']);
    it.bench.asked();
    assert.equal((await it.get('team/file')).kind, 'kept');
    assert.deepEqual(it.bench.asked(), []);
    for (const damaged of ['y'.repeat(3000), 'short', '']) {
      writeFileSync(first.path, damaged);
      assert.equal((await it.get('team/file')).kind, 'fetched');
      assert.deepEqual(readFileSync(first.path), content);
    }
  });

  it('keeps names such as ../x inside the directory, and does not follow a link that lies there', async () => {
    using it = downloads();
    const { repository } = it.bench;
    for (const name of ['../x', '.', '.hidden']) repository.addTarget(name, content);
    repository.publish();
    await it.bench.refresh();
    const bytes = repository.files.get('targets/x');
    assert.equal(bytes, undefined);
    symlinkSync('/etc/passwd', `${it.directory}/%2Ehidden`);
    assert.equal((await it.get('.hidden')).kind, 'fetched');
    assert.deepEqual(readFileSync(`${it.directory}/%2Ehidden`), content);
    await it.get('../x');
    assert.deepEqual(it.names(), ['%2E.%2Fx', '%2Ehidden']);
  });

  it('leaves nothing of what it refused', async () => {
    using it = downloads();
    const { repository } = it.bench;
    repository.addTarget('file', content);
    repository.publish();
    await it.bench.refresh();
    const [location] = [...repository.files.keys()].filter((name) => name.startsWith('targets/'));
    for (const [bytes, code] of [
      [Buffer.alloc(3000, 'y'), 'DOWNLOAD_DIGEST'],
      [Buffer.alloc(3001, 'x'), 'DOWNLOAD_TOO_LARGE'],
      [Buffer.alloc(2999, 'x'), 'DOWNLOAD_TRUNCATED'],
    ] as const) {
      repository.files.set(location!, bytes);
      await rejectsCode(code, it.get('file'));
      assert.deepEqual(it.names(), []);
    }
    repository.files.set(location!, content);
    const full = createDurableFs({
      before: ({ op }) => {
        if (op === 'download.target:flush')
          throw Object.assign(new Error('full'), { code: 'ENOSPC', syscall: 'fsync' });
      },
    });
    await rejectsCode('DISK_FULL', it.get('file', full));
    assert.deepEqual(it.names(), []);
  });

  it('refuses what is not listed, what has no digest known here, and a name too long for a file', async () => {
    using it = downloads();
    const { repository } = it.bench;
    const long = 'ä'.repeat(50);
    repository.addTarget('md5', content, { digests: ['md5'] });
    repository.addTarget(long, content);
    repository.publish();
    await it.bench.refresh();
    await rejectsCode('TARGET_UNKNOWN', it.get('nowhere'));
    await rejectsCode('TARGET_MALFORMED', it.get('md5'));
    await rejectsCode('TARGET_MALFORMED', it.get(long));
    assert.deepEqual(it.names(), []);
  });
});
