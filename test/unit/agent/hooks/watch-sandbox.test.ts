// A sandbox that fails while an agent runs, or in the next process run, is reported before a release needs it. bubblewrap is a stub.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createSandbox } from '../../../../src/agent/hooks/sandbox.js';
import { createSandboxRound, noteSandbox } from '../../../../src/agent/hooks/watch-sandbox.js';
import { exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import type { SandboxMode } from '../../../../src/core/config/config.js';
import { judgeHostHealth } from '../../../../src/core/status/host-health.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const works = '#!/bin/sh\necho \'{ "exit-code": 0 }\' >&3\n';
const broken = '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n';
const check = { kind: 'run', name: 'c', run: ['true'], timeoutMs: 1000, retry: 0 } as const;

interface Scene extends Disposable {
  readonly test: TestHost;
  readonly bwrap: (script: string | undefined) => void;
  /** Starts another process on the same host. */
  readonly restart: (mode?: SandboxMode) => void;
  readonly round: () => Promise<number | undefined>;
  readonly changes: () => number;
  readonly health: () => string[];
}

function scene(mode: SandboxMode): Scene {
  const dir = tempDir();
  fs.mkdirSync(dir.join('bin'));
  const write = (name: string, script: string): void => {
    fs.writeFileSync(dir.join('bin', name), script);
    fs.chmodSync(dir.join('bin', name), 0o755);
  };
  for (const name of ['prlimit', 'setpriv']) write(name, broken);
  const test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
  const restart = (now: SandboxMode = mode): void => {
    const sandbox = createSandbox({
      ...{ mode: now, log: silentLog(), searchPath: dir.join('bin') },
      findGroups: async () => undefined,
      readSetting: (path) => (path === 'user/max_user_namespaces' ? '0' : undefined),
    });
    Object.assign(test.host, { sandbox, config: { ...test.host.config, sandbox: now } });
  };
  restart();
  let count = 0;
  return {
    test,
    restart,
    bwrap: (script) => {
      if (script === undefined) fs.rmSync(dir.join('bin/bwrap'));
      else write('bwrap', script);
    },
    round: createSandboxRound({
      ...{ host: () => test.host, exclusive: exclusiveAlone },
      onChange: () => {
        count += 1;
      },
    }),
    changes: () => count,
    health: () => {
      const report = statusReport(test.host, {
        ...{ version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] },
      });
      const { findings } = judgeHostHealth(report);
      return findings.flatMap(({ code, text }) => (code.startsWith('SANDBOX') ? [`${code} ${text}`] : []));
    },
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

const reason = 'bwrap: No permissions to create new namespace';

describe('a sandbox that breaks while an agent runs', () => {
  for (const mode of ['auto', 'required'] as const) {
    it(`is a warning of health before a release needs it, and is tried again every minute (${mode})`, async () => {
      using at = scene(mode);
      at.bwrap(works);
      assert.equal(await at.round(), 3_600_000);
      assert.deepEqual([at.health(), at.changes()], [[], 1]);
      at.bwrap(broken);
      assert.equal(await at.round(), 60_000);
      const text = `SANDBOX_BROKEN no command can be confined (${reason}): 1 command does not run`;
      assert.deepEqual([at.health(), at.changes()], [[text], 2]);
      at.bwrap(works);
      await at.round();
      assert.deepEqual([at.health(), at.changes()], [[], 3]);
    });
  }

  it('is reported with the hint of the kernel', async () => {
    using at = scene('required');
    at.bwrap(broken);
    await at.round();
    assert.match(at.test.host.sandbox.status().hint ?? '', /user\.max_user_namespaces/);
    await assert.rejects(at.test.host.sandbox.open(), {
      code: 'SANDBOX_BROKEN',
      hint: /max_user_namespaces/,
    });
  });
});

describe('a sandbox that is missing in the next process run', () => {
  it('is a warning of health, and of the pull that ran a command without it under auto', async () => {
    using at = scene('auto');
    at.bwrap(works);
    await at.round();
    at.bwrap(undefined);
    at.restart();
    await at.round();
    assert.match(
      at.health()[0] ?? '',
      /^SANDBOX_MISSING .*1 command runs without a sandbox, which worked here before$/,
    );
    await at.test.publish('access', { f: '1' }, { serial: 1 });
    const { outcome, warnings } = await at.test.pull();
    assert.equal(outcome, 'activated');
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['SANDBOX_MISSING'],
    );
  });

  it('is no warning if no sandbox worked before, as in a container', async () => {
    using at = scene('auto');
    at.bwrap(broken);
    assert.equal(await at.round(), 3_600_000);
    await at.test.publish('access', { f: '1' }, { serial: 1 });
    const { warnings } = await at.test.pull();
    assert.deepEqual([at.health(), warnings], [[], []]);
  });

  it('is no warning after an operator turned it off and on again', async () => {
    using at = scene('auto');
    at.bwrap(works);
    await at.round();
    at.bwrap(undefined);
    at.restart('off');
    noteSandbox(at.test.host);
    at.restart('auto');
    await at.round();
    assert.deepEqual(at.health(), []);
  });
});

describe('a host without a command', () => {
  it('does not try the sandbox', async () => {
    using at = scene('required');
    at.bwrap(broken);
    Object.assign(at.test.host.config.bundles[0] ?? {}, { checks: [] });
    assert.equal(await at.round(), undefined);
    assert.equal(at.test.host.sandbox.status().state, 'unknown');
  });
});
