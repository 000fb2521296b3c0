// Each step of a cycle waits for the verdict of its command, however long it takes, and no later step has begun meanwhile.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { defaultHookSandbox } from '../../../src/core/config/hook-sandbox.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

type Run = readonly [string, ...string[]];

/** A command that waits for `open()`, and then exits with this code. */
function slow(
  dir: TempDir,
  name: string,
  exitCode = 0,
): { run: Run; reached(): Promise<void>; open(): void } {
  const [waits, mayEnd] = [dir.join(`${name}-waits`), dir.join(`${name}-may-end`)];
  const script = `touch ${waits}; while ! test -e ${mayEnd}; do sleep 0.02; done; exit ${exitCode}`;
  return {
    run: ['sh', '-c', script],
    reached: () => until(() => fs.existsSync(waits)),
    open: () => fs.writeFileSync(mayEnd, ''),
  };
}

const link = (test: TestHost): string | undefined =>
  fs.existsSync(test.host.paths.current) ? fs.readlinkSync(test.host.paths.current) : undefined;

function hostWith(dir: TempDir, exitCode = 0) {
  const [check, load] = [slow(dir, 'check'), slow(dir, 'load', exitCode)];
  const driver = scriptedDriver({ a: confirms });
  const timeoutMs = 60_000;
  const test = testHost({
    bundles: [
      {
        name: 'access',
        checks: [{ kind: 'run', name: 'c', run: check.run, timeoutMs, box: defaultHookSandbox }],
      },
    ],
    groups: { app: { driver, config: { load: { run: load.run, timeoutMs } } } },
  });
  return { test, check, load, notified: driver.notified };
}

describe('a slow verdict', () => {
  it('delays the swap until the check has ended, and the notifications until the loader has', async () => {
    using dir = tempDir();
    const { test, check, load, notified } = hostWith(dir);
    using _ = test;
    await test.publish('access', { a: '1' }, { serial: 1 });
    const pull = test.pull();
    await check.reached();
    assert.equal(link(test), undefined);
    assert.deepEqual(fs.readdirSync(`${test.host.paths.policy}/generations`), []);
    check.open();
    await load.reached();
    assert.equal(link(test), 'generations/1');
    assert.deepEqual(notified, []);
    load.open();
    assert.equal((await pull).exitCode, 0);
    assert.deepEqual(notified, ['a 1']);
  });

  it('of a loader prevents the notification of workers if it is a refusal', async () => {
    using dir = tempDir();
    const { test, check, load, notified } = hostWith(dir, 1);
    using _ = test;
    await test.publish('access', { a: '1' }, { serial: 1 });
    check.open();
    const pull = test.pull();
    await load.reached();
    load.open();
    assert.equal((await pull).exitCode, 5);
    assert.deepEqual([link(test), notified], [undefined, []]);
  });
});
