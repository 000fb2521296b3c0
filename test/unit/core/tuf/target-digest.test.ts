import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { openTargetDigest } from '../../../../src/core/tuf/target-digest.js';
import type { TargetFile } from '../../../../src/core/tuf/tuf-metadata.js';

const content = Buffer.from('the content of a target');
const digestOf = (algorithm: string): string => createHash(algorithm).update(content).digest('hex');

function judge(hashes: TargetFile['hashes'], bytes: Uint8Array = content): void {
  const digest = openTargetDigest('a/b', { length: content.length, hashes });
  for (let at = 0; at < bytes.length; at += 5) digest.update(bytes.subarray(at, at + 5));
  digest.requireSame();
}

describe('openTargetDigest', () => {
  it('accepts bytes with each known signed digest and the signed length', () => {
    judge({ sha256: digestOf('sha256') });
    judge({ sha512: digestOf('sha512') });
    judge({ sha256: digestOf('sha256'), sha512: digestOf('sha512'), blake3: 'whatever' });
  });

  it('continues independently after a copy', () => {
    const hashes = { sha256: digestOf('sha256'), sha512: digestOf('sha512') };
    const digest = openTargetDigest('a/b', { length: content.length, hashes });
    digest.update(content.subarray(0, 5));
    const copy = digest.copy();
    digest.update(Buffer.from('something else, and longer than it'));
    copy.update(content.subarray(5));
    copy.requireSame();
    assert.throws(() => digest.requireSame(), { code: 'DOWNLOAD_TOO_LARGE' });
  });

  it('rejects a difference in any digest', () => {
    const wrong = '00'.repeat(32);
    for (const hashes of [
      { sha256: wrong },
      { sha256: digestOf('sha256'), sha512: wrong },
      { sha256: wrong, sha512: digestOf('sha512') },
      { sha256: digestOf('sha256').toUpperCase() },
    ]) {
      assert.throws(() => judge(hashes), { code: 'DOWNLOAD_DIGEST' });
    }
  });

  it('rejects a changed byte, an early end and an additional byte', () => {
    const hashes = { sha256: digestOf('sha256') };
    const changed = Buffer.from(content);
    changed[3] = 0;
    assert.throws(() => judge(hashes, changed), { code: 'DOWNLOAD_DIGEST' });
    assert.throws(() => judge(hashes, content.subarray(1)), { code: 'DOWNLOAD_TRUNCATED' });
    assert.throws(() => judge(hashes, Buffer.concat([content, Buffer.alloc(1)])), {
      code: 'DOWNLOAD_TOO_LARGE',
    });
  });

  it('rejects a target without a known digest', () => {
    for (const hashes of [{}, { md5: 'x' }, Object.create({ sha256: digestOf('sha256') })]) {
      assert.throws(() => judge(hashes), { code: 'TARGET_MALFORMED' });
    }
  });
});
