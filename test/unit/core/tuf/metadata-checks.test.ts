import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { isVouchedByRoot, requireDigests, requireFresh } from '../../../../src/core/tuf/metadata-checks.js';
import { recallFile, trustFirstRoot, trustNextRoot } from '../../../../src/core/tuf/trusted-set.js';
import type { ParsedFile, TopLevelRole } from '../../../../src/core/tuf/tuf-metadata.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

function hintFor(name: string): string | undefined {
  const signed = { version: 1, expires: '2026-01-01T00:00:00Z' };
  const file = { name, role: name, signed, expiresAtMs: 1 } as unknown as ParsedFile<TopLevelRole>;
  return throwsCode('METADATA_EXPIRED', () => requireFresh(file, 1)).hint;
}

describe('requireFresh', () => {
  it('names the command for the publisher, the server or the holders of the root keys', () => {
    assert.match(hintFor('root') ?? '', /`writ root rotate`/);
    for (const role of ['timestamp', 'snapshot']) assert.match(hintFor(role) ?? '', /`writ refresh`/);
    assert.match(hintFor('targets') ?? '', /`writ sign --role targets`/);
    assert.match(hintFor('dns-team') ?? '', /`writ sign --role dns-team`/);
  });
});

describe('requireDigests', () => {
  const bytes = Buffer.from('four');
  const hex = (algorithm: string, text: string): string => createHash(algorithm).update(text).digest('hex');
  const judge = (meta: object): void => requireDigests('snapshot', { version: 1, ...meta }, bytes);

  it('requires the length of a file if no digest is listed', () => {
    judge({ length: 4 });
    for (const length of [3, 5]) throwsCode('METADATA_MIX', () => judge({ length }));
  });

  it('requires each known digest, so that one correct digest is not enough', () => {
    const right = { sha256: hex('sha256', 'four'), sha512: hex('sha512', 'four') };
    judge({ hashes: right });
    for (const name of ['sha256', 'sha512'])
      throwsCode('METADATA_MIX', () => judge({ hashes: { ...right, [name]: hex(name, 'five') } }));
  });
});

describe('isVouchedByRoot', () => {
  it('has a separate verdict of each root about a file, in any order of calls', () => {
    const repository = new RepositorySimulator({ nowMs: Date.UTC(2026, 10, 1) });
    const first = trustFirstRoot(repository.bootstrapRoot);
    repository.rotate('timestamp');
    const next = trustNextRoot(first, repository.file('2.root.json'));
    const timestamp = recallFile(repository.file('timestamp.json'), 'timestamp');
    assert.ok(timestamp);
    const verdicts = [first, next, next, first, first].map(({ root }) => isVouchedByRoot(timestamp, root));
    assert.deepEqual(verdicts, [true, false, false, true, true]);
  });
});
