// The example of docs/configuration.md for a check that compares {current}: the script of the page, in the sandbox and without.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CheckConfig } from '../../../src/core/config/config.js';
import { defaultHookSandbox } from '../../../src/core/config/hook-sandbox.js';
import { confinedHost } from '../../kit/host/confined-host.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const options = { timeout: 120_000, ...needs('bwrap', 'bubblewrap') };

/** @returns the program of the page as a command; {current} is that of the page. */
function exampleCheck(): CheckConfig {
  const page = fs.readFileSync(join(projectRoot, 'docs/configuration.md'), 'utf8');
  const [, script = ''] =
    /```sh\n(#!\/bin\/sh\n# \/usr\/local\/bin\/compare-lines[\s\S]*?)```/.exec(page) ?? [];
  const [, args = ''] = /run: \[\/usr\/local\/bin\/compare-lines, (.*)\]/.exec(page) ?? [];
  assert.ok(script !== '' && args.includes('{current}'), 'the page has the example');
  const [first = '', second = ''] = args.split(', ').map((one) => one.replaceAll('"', ''));
  const run = ['sh', '-c', script, 'compare-lines', first, second.replace('dns-edge', 'access')] as const;
  return {
    kind: 'run',
    name: 'no list loses half of its lines',
    run,
    timeoutMs: 60_000,
    box: defaultHookSandbox,
  };
}

for (const sandbox of ['required', 'off'] as const) {
  describe(`the check of the page that compares {current}, with sandbox: ${sandbox}`, options, () => {
    it('accepts a first release, and refuses one that loses more than half of the lines', async () => {
      using test = confinedHost(exampleCheck(), { config: { sandbox } });
      const publish = (serial: number, lines: number): Promise<Buffer> =>
        test.publish('access', { list: 'line\n'.repeat(lines) }, { serial });
      await publish(1, 100);
      assert.equal((await test.pull()).outcome, 'activated', '{current} is an empty directory');
      await publish(2, 49);
      const { outcome, bundles } = await test.pull();
      const { code, facts } = bundles[0]?.problem ?? assert.fail();
      assert.deepEqual(
        [outcome, code, facts?.['output']],
        ['rejected', 'CHECK_FAILED', '49 lines, 100 in use'],
      );
      await publish(3, 50);
      assert.equal((await test.pull()).outcome, 'activated');
    });

    it('refuses a release without the list, and accepts one that adds it', async () => {
      using test = confinedHost(exampleCheck(), { config: { sandbox } });
      await test.publish('access', { other: '1\n' }, { serial: 1 });
      assert.equal((await test.pull()).bundles[0]?.problem?.code, 'CHECK_FAILED');
      await test.publish('access', { list: '1\n' }, { serial: 2 });
      assert.equal((await test.pull()).outcome, 'activated');
    });
  });
}
