import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createSandbox } from '../../../../src/agent/hooks/sandbox.js';
import { defaultPath } from '../../../../src/platform/process/run-command.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';

const log = silentLog();

/** Creates programs with these names. The stub of bubblewrap has the message of the real one without permission. */
function programs(dir: TempDir, names: readonly string[]): string {
  fs.mkdirSync(dir.join('bin'));
  for (const name of names) {
    fs.writeFileSync(
      dir.join('bin', name),
      '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n',
    );
    fs.chmodSync(dir.join('bin', name), 0o755);
  }
  return dir.join('bin');
}

describe('the sandbox', () => {
  it('that is required and not installed stops commands, and is searched again', async () => {
    using dir = tempDir();
    const sandbox = createSandbox({ mode: 'required', log, searchPath: programs(dir, ['prlimit']) });
    assert.equal(sandbox.status().state, 'unknown');
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_MISSING' });
    assert.deepEqual(sandbox.status(), {
      mode: 'required',
      state: 'missing',
      reason: 'bwrap, setpriv not found',
      withoutIt: 'refused',
    });
    fs.writeFileSync(dir.join('bin/bwrap'), '');
    fs.writeFileSync(dir.join('bin/setpriv'), '');
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_BROKEN' });
  });

  it('that is not installed under auto lets commands run unconfined, and the status shows it', async () => {
    using dir = tempDir();
    const sandbox = createSandbox({ mode: 'auto', log, searchPath: programs(dir, []) });
    assert.equal(await sandbox.open(), undefined);
    assert.equal(sandbox.status().state, 'missing');
  });

  it('that the kernel or a container forbids is reported with the message of bubblewrap', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    const reason = 'bwrap: No permissions to create new namespace';
    const required = createSandbox({ mode: 'required', log, searchPath });
    await assert.rejects(required.open(), { code: 'SANDBOX_BROKEN' });
    const readSetting = (): undefined => undefined;
    const auto = createSandbox({ mode: 'auto', log, searchPath, readSetting });
    assert.equal(await auto.open(), undefined);
    const status = { mode: 'auto', state: 'unusable', reason, withoutIt: 'unconfined' };
    assert.deepEqual(auto.status(), status);
  });

  it('that is off is never searched', async () => {
    const sandbox = createSandbox({ mode: 'off', log, searchPath: '/nonexistent' });
    assert.equal(await sandbox.open(), undefined);
    assert.deepEqual(sandbox.status(), { mode: 'off', state: 'off' });
  });

  it('that worked once is required from then on, because an attacker may make a trial fail', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    const fails = fs.readFileSync(dir.join('bin/bwrap'));
    // The status line of bubblewrap for a command that succeeded.
    fs.writeFileSync(dir.join('bin/bwrap'), '#!/bin/sh\necho \'{ "exit-code": 0 }\' >&3\n');
    const sandbox = createSandbox({ mode: 'auto', log, searchPath });
    assert.notEqual(await sandbox.open(), undefined);
    fs.writeFileSync(dir.join('bin/bwrap'), fails);
    sandbox.forget();
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_BROKEN' });
    assert.equal(sandbox.status().state, 'unusable');
    fs.rmSync(dir.join('bin/bwrap'));
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_MISSING' });
  });

  it('is tried again with the known capabilities, and searched again only if they fail', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    const fails = fs.readFileSync(dir.join('bin/bwrap'));
    const works = '#!/bin/sh\necho \'{ "exit-code": 0 }\' >&3\n';
    fs.writeFileSync(dir.join('bin/bwrap'), works);
    let searches = 0;
    const findGroups = async (): Promise<undefined> => {
      searches += 1;
    };
    const sandbox = createSandbox({ mode: 'auto', log, searchPath, findGroups });
    const capabilities = await sandbox.open();
    await sandbox.retry();
    assert.deepEqual([await sandbox.open(), searches], [capabilities, 1]);
    fs.writeFileSync(dir.join('bin/bwrap'), fails);
    await assert.rejects(sandbox.retry(), { code: 'SANDBOX_BROKEN' });
    fs.writeFileSync(dir.join('bin/bwrap'), works);
    await sandbox.retry();
    assert.deepEqual([sandbox.status().state, searches], ['on', 2]);
  });

  it('with a trial that does not end by itself does not count as missing', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    fs.writeFileSync(dir.join('bin/bwrap'), '#!/bin/sh\nkill -9 $$\n');
    const sandbox = createSandbox({ mode: 'auto', log, searchPath });
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_BROKEN' });
  });

  /** A bubblewrap that does not support a filter. @param without its commands without a filter */
  function bwrapWithoutFilter(dir: TempDir, message: string, without: string): void {
    fs.writeFileSync(
      dir.join('bin/bwrap'),
      `#!/bin/sh\ncase "$*" in *--seccomp*) echo "${message}" >&2; exit 1;; esac\n${without}\n`,
    );
  }
  const runs = 'echo \'{ "exit-code": 0 }\' >&3';
  const noFilter = 'bwrap: prctl(PR_SET_SECCOMP): Invalid argument';

  it('works without a filter that the kernel or bubblewrap does not support, and the status shows it', async () => {
    for (const message of [noFilter, 'bwrap: Unknown option --seccomp']) {
      using dir = tempDir();
      const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
      bwrapWithoutFilter(dir, message, runs);
      const sandbox = createSandbox({ mode: 'required', log, searchPath });
      assert.equal((await sandbox.open())?.systemCalls, undefined);
      const { state, systemCalls, userNamespace } = sandbox.status();
      assert.deepEqual([state, systemCalls, userNamespace], ['on', 'open', 'yes']);
    }
  });

  it('works without a filter on a machine with unknown system call numbers', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    bwrapWithoutFilter(dir, noFilter, runs);
    const sandbox = createSandbox({ mode: 'required', log, searchPath, machine: 'riscv64' });
    await sandbox.open();
    assert.equal(sandbox.status().systemCalls, 'open');
  });

  it('keeps the filter after a trial that failed for another reason', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    bwrapWithoutFilter(dir, 'bwrap: Resource temporarily unavailable', runs);
    await assert.rejects(createSandbox({ mode: 'required', log, searchPath }).open(), {
      code: 'SANDBOX_BROKEN',
    });
  });

  it('keeps a filter that worked before, whatever bubblewrap reports later', async () => {
    using dir = tempDir();
    const searchPath = programs(dir, ['bwrap', 'prlimit', 'setpriv']);
    fs.writeFileSync(dir.join('bin/bwrap'), `#!/bin/sh\n${runs}\n`);
    const sandbox = createSandbox({ mode: 'auto', log, searchPath });
    await sandbox.open();
    assert.equal(sandbox.status().systemCalls, 'filtered');
    bwrapWithoutFilter(dir, noFilter, runs);
    sandbox.forget();
    await assert.rejects(sandbox.open(), { code: 'SANDBOX_BROKEN' });
  });

  it('is searched once, and the status shows the enforced limits', needs('bwrap', 'bubblewrap'), async () => {
    const sandbox = createSandbox({ mode: 'required', log, searchPath: defaultPath });
    const capabilities = await sandbox.open();
    assert.equal(await sandbox.open(), capabilities);
    assert.deepEqual(sandbox.status(), {
      mode: 'required',
      state: 'on',
      user: process.getuid?.() === 0 ? 'nobody' : 'agent',
      userNamespace: 'yes',
      memory: 'each-process',
      processes: 'each-command',
      systemCalls: 'filtered',
    });
    sandbox.forget();
    assert.notEqual(await sandbox.open(), capabilities);
  });
});
