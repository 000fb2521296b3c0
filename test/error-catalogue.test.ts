// The error catalogue in three directions: the page is what the table says, the sources raise every code, and
// a test produces every code.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { errorCodes } from '../src/core/error-codes.js';
import { runCommand } from '../src/platform/run-command.js';
import { matchesFile } from './support/golden.js';
import { projectRoot, readSources } from './support/source-files.js';

/** Codes whose part is still being built. Nothing may be added for good: the list is to be empty. */
const awaited: ReadonlySet<string> = new Set([
  'PATH_UNSAFE',
  'ROOT_MISSING',
  'ROOT_NOT_LINKED',
  'SIGNATURE_DUPLICATE',
  'TRUST_STORE_DAMAGED',
  'TARGET_UNKNOWN',
  'TARGET_MISSING',
  'SERVER_UNREACHABLE',
  'SERVER_ERROR',
  'SERVER_BUSY',
  'REDIRECT_REFUSED',
  'DOWNLOAD_TOO_LARGE',
  'DOWNLOAD_TRUNCATED',
  'DOWNLOAD_DIGEST',
  'DOWNLOAD_TIMEOUT',
  'ARCHIVE_MALFORMED',
  'ENTRY_REFUSED',
  'MANIFEST_DIGEST',
  'MANIFEST_MISMATCH',
  'CHECK_FAILED',
  'CHECK_BROKEN',
  'CHECK_DEFERRED',
  'CANDIDATE_CHANGED',
  'REMEMBERED_REFUSAL',
  'LOADER_FAILED',
  'LOADER_BROKEN',
  'WORKER_REFUSED',
  'PROBE_FAILED',
  'WORKERS_MISSING',
  'WORKER_UNCONFIRMED',
  'ACTIVATION_BLOCKED',
  'NO_PREVIOUS',
  'RELEASE_HELD',
  'STATE_DAMAGED',
  'AGENT_UNREACHABLE',
  'AGENT_STOPPING',
  'INTERRUPTED',
  'KEY_EXISTS',
  'PASSPHRASE_WRONG',
  'PASSPHRASE_NEEDED',
  'REPOSITORY_EXISTS',
  'SIGNATURE_DISAGREEMENT',
]);

function mentioned(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/['"`]([A-Z][A-Z0-9_]+)['"`]/g)].map(([, code]) => code ?? ''));
}

function testTexts(): string {
  const root = join(projectRoot, 'test');
  // These two speak of codes without producing them.
  const skip = new Set(['error-catalogue.test.ts', join('core', 'errors.test.ts')]);
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !skip.has(name))
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n');
}

function without(found: ReadonlySet<string>): string[] {
  return Object.keys(errorCodes).filter((code) => !found.has(code) && !awaited.has(code));
}

describe('the error catalogue', () => {
  it('is the page that its table makes', async () => {
    const script = join(projectRoot, 'scripts', 'make-error-catalogue.js');
    const argv = [process.execPath, script, '--stdout'] as const;
    const result = await runCommand({ argv, timeoutMs: 20_000, maxOutputBytes: 1_000_000 });
    assert.ok(result.kind === 'exited' && result.exitCode === 0 && !result.truncated);
    matchesFile('docs/errors.md', result.stdout);
  });

  it('has no code that the sources never raise', () => {
    const sources = readSources().filter(({ path }) => path !== 'core/error-codes.ts');
    assert.deepEqual(without(mentioned(sources.map(({ text }) => text).join('\n'))), []);
  });

  it('has no code that no test produces', () => {
    assert.deepEqual(without(mentioned(testTexts())), []);
  });

  it('awaits only codes that exist', () => {
    assert.deepEqual(
      [...awaited].filter((code) => !(code in errorCodes)),
      [],
    );
  });
});
