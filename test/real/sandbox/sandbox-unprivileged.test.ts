// The sandbox of an agent that is not root: runs the other tests of this folder again, as user 65534.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { longCase } from '../../kit/assert/long-case.js';
import { needs } from '../../kit/programs/real-programs.js';
import { readableCheckout } from '../../kit/sources/readable-checkout.js';

const isRoot = process.getuid?.() === 0;

const whenRoot = isRoot ? {} : { skip: 'the tests beside this one run as a user who is not root already' };

describe('under an agent that is not root', {
  ...needs('bwrap', 'bubblewrap'),
  ...whenRoot,
  ...longCase,
}, () => {
  for (const name of ['sandbox', 'sandbox-ends']) {
    it(`the tests of ${name} pass too`, { timeout: 240_000 }, async () => {
      const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'] as const;
      const result = await runCommand({
        argv: [
          ...unprivileged,
          process.execPath,
          '--test',
          join(readableCheckout(), `dist/test/real/sandbox/${name}.test.js`),
        ],
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
