// `writ verify` on a real read-only mount, because a broken disk is a reason to verify.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { copyHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { needsMounts, runMounted } from '../../kit/disk/mounted.js';

const asRoot = process.getuid?.() === 0 ? needsMounts() : { skip: 'a read-only mount needs root' };

describe('writ verify without an agent, on a disk that is read-only', asRoot, () => {
  async function verify(harm: (policy: string) => void, ...flags: string[]) {
    const installed = await installHost();
    using _ = installed;
    const host = copyHost(installed);
    using __ = host;
    harm(join(fs.realpathSync(host.paths.current), 'dns-edge'));
    const state = host.paths.state;
    const script = `
      const { runWrit } = await import(at('test/kit/cli/run-writ.js'));
      const run = await runWrit(['verify', ...${JSON.stringify(flags)}, '--json', '--config', ${JSON.stringify(host.config)}]);
      process.stdout.write(run.stdout);
      process.exitCode = run.exitCode;`;
    const mounts = [`mount --bind ${state} ${state}`, `mount -o remount,ro,bind ${state}`];
    const run = await runMounted(mounts, script);
    assert.ok(run.kind === 'exited', JSON.stringify(run));
    const said = JSON.parse(run.stdout) as { outcome?: string; code?: string };
    return { exitCode: run.exitCode, outcome: said.outcome, code: said.code };
  }

  it('reports that the policy is intact', async () => {
    assert.deepEqual(await verify(() => undefined), { exitCode: 0, outcome: 'intact', code: undefined });
  });

  it('reports the damage', longCase, async () => {
    const ended = await verify((tree) => fs.writeFileSync(join(tree, 'block.rpz'), 'VERSION 1\n'));
    assert.deepEqual([ended.exitCode, ended.outcome], [1, 'damaged']);
  });

  it('repairs nothing, and reports the reason', longCase, async () => {
    const ended = await verify(() => undefined, '--repair');
    assert.deepEqual([ended.exitCode, ended.code], [1, 'DISK_READ_ONLY']);
  });
});
