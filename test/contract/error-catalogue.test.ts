// The error catalogue in three directions: the page has the content of the table, the sources raise every code, and
// a test produces every code.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { errorCodes } from '../../src/core/error-codes.js';
import { runCommand } from '../../src/platform/process/run-command.js';
import { matchesFile } from '../kit/assert/golden.js';
import { projectRoot, readSources } from '../kit/sources/source-files.js';

function mentioned(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/['"`]([A-Z][A-Z0-9_]+)['"`]/g)].map(([, code]) => code ?? ''));
}

function testTexts(): string {
  const root = join(projectRoot, 'test');
  // These two files contain codes without producing them.
  const skip = new Set(['error-catalogue.test.ts', join('core', 'errors.test.ts')]);
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !skip.has(name))
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n');
}

function without(found: ReadonlySet<string>): string[] {
  return Object.keys(errorCodes).filter((code) => !found.has(code));
}

describe('the error catalogue', () => {
  it('equals the page that the script makes of its table', async () => {
    const script = join(projectRoot, 'scripts', 'make-error-catalogue.js');
    const argv = [process.execPath, script, '--stdout'] as const;
    const result = await runCommand({ argv, timeoutMs: 60_000, maxOutputBytes: 1_000_000 });
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
});
