// The sandbox of an agent that is not root: the tests beside this one again, as nobody.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { needs } from '../../kit/programs/real-programs.js';

const isRoot = process.getuid?.() === 0;

/** Where the compiled tests lie, as everybody sees it. */
function isOpenToAll(path: string): boolean {
  return (fs.statSync(path).mode & 0o005) === 0o005 && (path === '/' || isOpenToAll(dirname(path)));
}

function reasonToSkip(): { skip?: string } {
  if (!isRoot) return { skip: 'the tests beside this one run as a user who is not root already' };
  return isOpenToAll(import.meta.dirname) ? {} : { skip: 'nobody else may read this checkout' };
}

describe('under an agent that is not root', { ...needs('bwrap', 'bubblewrap'), ...reasonToSkip() }, () => {
  for (const name of ['sandbox', 'sandbox-ends']) {
    it(`the tests of ${name} hold too`, { timeout: 240_000 }, async () => {
      const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'] as const;
      const result = await runCommand({
        argv: [...nobody, process.execPath, '--test', join(import.meta.dirname, `${name}.test.js`)],
        env: { HOME: '/nonexistent' },
        cwd: '/',
        timeoutMs: 230_000,
        maxOutputBytes: 100_000,
      });
      assert.equal(result.kind, 'exited');
      assert.equal(result.kind === 'exited' && result.exitCode, 0, 'stdout' in result ? result.stdout : '');
    });
  }
});
