// What may be read of a file that somebody calls a delta, before anything is believed of it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { defaultArchiveLimits as limits } from '../../../../src/core/limits.js';
import { inspectDelta } from '../../../../src/publisher/upkeep/inspect-delta.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('inspectDelta', () => {
  it('refuses what holds more than a host would take for its length', async () => {
    using dir = tempDir();
    const begin = Buffer.from('writ-delta 1\n');
    fs.writeFileSync(
      dir.join('a.delta'),
      brotliCompressSync(Buffer.concat([begin, Buffer.alloc(2_000_000)])),
    );
    await rejectsCode('DELTA_MALFORMED', inspectDelta(dir.join('a.delta'), limits));
  });

  it('refuses what is longer than any file of a repository, is no file, or begins otherwise', async () => {
    using dir = tempDir();
    const path = dir.join('a.delta');
    fs.writeFileSync(path, brotliCompressSync('writ-delta 2\n'));
    await rejectsCode('DELTA_MALFORMED', inspectDelta(path, limits));
    await rejectsCode('DELTA_MALFORMED', inspectDelta(path, { ...limits, maxArchiveBytes: 4 }));
    await rejectsCode('DELTA_MALFORMED', inspectDelta(dir.path, limits));
  });

  it('calls a delta with a changed byte a delta', async () => {
    using dir = tempDir();
    const path = dir.join('a.delta');
    const bytes = brotliCompressSync(`writ-delta 1\n${'a line of a policy\n'.repeat(200)}`);
    bytes.fill(0xff, 8);
    fs.writeFileSync(path, bytes);
    const error = await rejectsCode('DELTA_MALFORMED', inspectDelta(path, limits));
    assert.equal(error.message, 'the delta is refused: it is not Brotli, or is cut off');
    fs.writeFileSync(path, 'no brotli');
    await rejectsCode('DELTA_MALFORMED', inspectDelta(path, limits));
  });
});
