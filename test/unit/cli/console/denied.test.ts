import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { deniedOr } from '../../../../src/cli/console/denied.js';
import { policyStands } from '../../../../src/core/cycle/policy-stands.js';
import { toWritError, WritError } from '../../../../src/core/errors.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';

const system = (code: string): Error => Object.assign(new Error(`${code}: x`), { code });

describe('an error of a command', () => {
  it('is DISK_DENIED if the system denied a file, with the answer about the policy', () => {
    for (const code of ['EACCES', 'EPERM']) {
      const denied = deniedOr(policyStands(toWritError(system(code)), 17));
      assert.deepEqual([denied.code, denied.message], ['DISK_DENIED', `${code}: x`]);
      assert.equal(denied.facts.policy, 'Generation 17 stays active; nothing was changed');
    }
  });

  it('keeps its code for every other failure', () => {
    for (const error of [toWritError(system('EIO')), toWritError('x'), new WritError('DISK_FULL', 'x')])
      assert.equal(deniedOr(error), error);
    const own = new WritError('TRUST_STORE_DAMAGED', 'x', { cause: system('EACCES') });
    assert.equal(deniedOr(own), own);
  });
});

describe('a user without permission to read the files of a host', {
  skip: process.getuid?.() === 0 ? false : 'only root can become another user',
}, () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  for (const command of ['history', 'diff', 'pull', 'verify']) {
    it(`gets this error from ${command}, and no request to report a bug`, longCase, async () => {
      using host = copyHost(installed);
      chmodSync(host.dir.path, 0o755);
      const withoutRights = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
      const run = await host.writUnder(withoutRights, command, '--json');
      assert.equal(jsonOf(run)['code'], 'DISK_DENIED', run.stdout);
    });
  }
});
