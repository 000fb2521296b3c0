// The release that a probe expects: the last one that its worker had to use, through later releases of which it was correctly
// not notified.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { probeCommands, runGroupProbe } from '../../../../src/agent/notify/probe-workers.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { stampedFiles } from '../../../kit/sources/stamped-files.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** Publishes a release with the same source of the zone each time, and pulls it. */
  readonly take: (serial: number, zone?: string) => Promise<void>;
  readonly commands: (worker?: string) => string[];
}

async function scene(config: Record<string, unknown> = {}): Promise<Scene> {
  const driver = scriptedDriver({ a: confirms, b: confirms });
  const test = testHost({ groups: { app: { driver, config: { when: ['zone'], ...config } } } });
  const take = async (serial: number, zone = 'zone'): Promise<void> => {
    const { files, stamped } = stampedFiles(sourceOf(serial, zone), serial);
    await test.publish('access', files, { serial, stamped });
    const { outcome } = await test.pull();
    assert.equal(outcome, 'activated');
  };
  const commands = (worker?: string): string[] => {
    const run = ['ask', '{serial}', '{source:access}'] as [string, ...string[]];
    const question = { run, worker, generation: 99 };
    return probeCommands(test.host, test.host.config.workers[0]!, question).map((one) => one.join(' '));
  };
  return { test, driver, take, commands };
}

/** The notes differ each time, so that the digest of the source differs too. */
const sourceOf = (serial: number, zone: string) => ({
  zone: `${zone} @writ.serial@ @writ.source@`,
  notes: `note ${serial}`,
});

const asked = (serial: number, zone = 'zone'): string => {
  const { stamped } = stampedFiles(sourceOf(serial, zone), serial);
  return `ask ${serial} ${stamped.source.slice('sha256:'.length).slice(0, 16)}`;
};

describe('a release that differs only in its stamps from the files of a group', () => {
  it('does not notify the group, and its probe still expects the older stamp', async () => {
    const { test, driver, take, commands } = await scene();
    using _ = test;
    await take(1);
    for (const serial of [2, 3, 4, 5, 6]) await take(serial);
    assert.deepEqual(driver.notified, ['a 1', 'b 1']);
    assert.deepEqual([commands(), commands('a')], [[asked(1)], [asked(1)]]);
    await take(7, 'other');
    assert.deepEqual(driver.notified.slice(2), ['a 7', 'b 7']);
    assert.deepEqual(commands(), [asked(7, 'other')]);
  });

  it('does not remove the release that a worker was notified of', async () => {
    const { test, take, commands } = await scene();
    using _ = test;
    for (let serial = 1; serial < 8; serial++) {
      await test.clock.advance(3_600_000);
      await take(serial);
    }
    assert.deepEqual(commands('b'), [asked(1)]);
  });

  it('is expected of a worker that joined later, and either release of a group with both workers', async () => {
    const { test, driver, take, commands } = await scene();
    using _ = test;
    await take(1);
    await take(2);
    driver.workers.set('c', confirms);
    await test.pull();
    assert.deepEqual([commands('a'), commands('c')], [[asked(1)], [asked(2)]]);
    assert.deepEqual(commands(), [asked(2), asked(1)]);
    const context = {
      groups: test.host.groups,
      target: { generation: 2, path: test.directory },
      staging: test.directory,
      signal: new AbortController().signal,
      nextNotificationId: () => '',
    };
    const [group] = test.host.groups;
    const answers = async (script: string): Promise<string> => {
      const probe = { run: ['sh', '-c', script] as [string, ...string[]], timeoutMs: 60_000 };
      return (await runGroupProbe(test.host, group!, { probe, workers: [] }, context)).verdict.kind;
    };
    assert.equal(await answers('test {serial} = 1'), 'ok');
    assert.equal(await answers('test {serial} = 2'), 'ok');
    assert.equal(await answers('test {serial} = 3'), 'refused');
  });

  it('causes no restart by `when.restart` either', async () => {
    const { test, driver, take } = await scene({ when: [], restartWhen: ['zone'] });
    using _ = test;
    await take(1);
    Object.assign(driver, { restart: async () => assert.fail('restarted') });
    driver.notified.length = 0;
    await take(2);
    assert.deepEqual(driver.notified, ['a 2', 'b 2'], 'for the notes, by a reset');
  });
});

describe('the stamp of a probe', () => {
  it('is that of the target generation if no worker is known yet', async () => {
    const { test, take } = await scene();
    using _ = test;
    await take(1);
    setLedger(test.host.ledger, { workers: {} });
    const config = test.host.config.workers[0]!;
    const commands = probeCommands(test.host, config, { run: ['ask', '{serial}'], generation: 1 });
    assert.deepEqual(commands, [['ask', '1']]);
  });

  it('does not exist if its bundle has no release, and the probe gives no verdict', async () => {
    const { test, take } = await scene();
    using _ = test;
    await take(1);
    const context = {
      groups: test.host.groups,
      target: { generation: 1, path: test.directory },
      staging: test.directory,
      signal: new AbortController().signal,
      nextNotificationId: () => '',
    };
    const probe = { run: ['true', '{serial:other}'] as [string, string], timeoutMs: 60_000 };
    const [group] = test.host.groups;
    const { verdict } = await runGroupProbe(test.host, group!, { probe, workers: [] }, context);
    assert.equal(verdict.kind, 'broken');
  });
});
