import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requireFresh } from '../../src/core/metadata-checks.js';
import type { ParsedFile, TopLevelRole } from '../../src/core/tuf-metadata.js';
import { throwsCode } from '../support/assert-code.js';

function hintFor(name: string): string | undefined {
  const signed = { version: 1, expires: '2026-01-01T00:00:00Z' };
  const file = { name, role: name, signed, expiresAtMs: 1 } as unknown as ParsedFile<TopLevelRole>;
  return throwsCode('METADATA_EXPIRED', () => requireFresh(file, 1)).hint;
}

describe('requireFresh', () => {
  it('names the command that helps: it is another one for who publishes, serves, or holds the root', () => {
    assert.match(hintFor('root') ?? '', /`writ root rotate`/);
    for (const role of ['timestamp', 'snapshot']) assert.match(hintFor(role) ?? '', /`writ refresh`/);
    assert.match(hintFor('targets') ?? '', /`writ sign --role targets`/);
    assert.match(hintFor('dns-team') ?? '', /`writ sign --role dns-team`/);
  });
});
