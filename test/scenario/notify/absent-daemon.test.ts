// A daemon that is down at its first deploy, or at an update, has refused nothing: rndc and its kin end with 1 all the same.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { command } from '../../../src/workers/drivers/command.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { driverContext } from '../../kit/workers/driver-context.js';

/** A control program that says yes while the daemon lives, and cannot connect while it does not. */
function hostOf(dir: TempDir): TestHost {
  const pidFile = dir.join('pid');
  const script = `test -e ${pidFile} || { echo "connect failed" >&2; exit 1; }`;
  const driver = command.create({ run: ['sh', '-c', script], pidFile, confirms: true }, driverContext());
  return testHost({ groups: { ns: { driver } } });
}

const up = (dir: TempDir): void => writeFileSync(dir.join('pid'), `${process.pid}\n`);
const down = (dir: TempDir): void => rmSync(dir.join('pid'));

describe('a daemon that is reached by a control program', () => {
  it('keeps no policy off at the first deploy while it is down, and is told when it comes', async () => {
    using dir = tempDir();
    using test = hostOf(dir);
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    const first = await test.pull();
    assert.deepEqual(
      [first.outcome, first.exitCode, first.generation, first.confirmed],
      ['degraded', 4, 1, false],
    );
    assert.deepEqual(test.host.refusals.read().refusals, []);
    up(dir);
    const second = await test.pull();
    assert.deepEqual([second.outcome, second.confirmed], ['unchanged', true]);
  });

  it('refuses no release by being down at an update, and blocks nothing', async () => {
    using dir = tempDir();
    using test = hostOf(dir);
    up(dir);
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    down(dir);
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    const update = await test.pull();
    assert.deepEqual([update.outcome, update.generation], ['degraded', 2]);
    assert.deepEqual([test.host.refusals.read().refusals, test.host.ledger.read().blocked], [[], undefined]);
    up(dir);
    assert.deepEqual((await test.pull()).confirmed, true);
  });
});
