import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadAtBoot } from '../../../../src/agent/notify/boot-loaders.js';
import { startHost } from '../../../../src/agent/startup/start-host.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import type { HookConfig } from '../../../../src/core/config/config.js';
import { WritError } from '../../../../src/core/errors.js';
import { readBootId } from '../../../../src/platform/process/boot-id.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const signal = new AbortController().signal;
const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });

const start = (host: Host): ReturnType<typeof startHost> => startHost(host, { cycle: 'c-ab', signal });

describe('a start', () => {
  async function hostWithPolicy(): Promise<{ test: TestHost; file: string }> {
    const test = testHost();
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    return { test, file: join(test.host.paths.current, 'access/policy.yaml') };
  }

  it('after a boot reads the active trees in full, and once', async () => {
    const { test, file } = await hostWithPolicy();
    using _ = test;
    assert.equal((await start(test.reopen())).damage, undefined);
    assert.equal(test.reopen().ledger.read().verifiedBootId, readBootId());
    fs.writeFileSync(file, 'VERSION: 1\n');
    assert.equal((await start(test.reopen())).damage, undefined, 'the quick scan compares no bytes');
    const rebooted = test.reopen();
    setLedger(rebooted.ledger, { verifiedBootId: 'another boot' });
    const { damage, repaired } = await start(rebooted);
    assert.deepEqual([damage, repaired?.result.outcome], [undefined, 'activated']);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.equal(rebooted.ledger.read().verifiedBootId, readBootId());
  });

  it('after an unclean end reads them in full too', async () => {
    const { test, file } = await hostWithPolicy();
    using _ = test;
    await start(test.reopen());
    fs.writeFileSync(file, 'VERSION: 1\n');
    fs.mkdirSync(join(test.host.paths.staging, 'c-dead'));
    assert.equal((await start(test.reopen())).repaired?.result.trigger, 'repair');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('does not repair damage when the configuration forbids it, and force repairs it', async () => {
    const { test, file } = await hostWithPolicy();
    using _ = test;
    fs.writeFileSync(file, 'VERSION: 1\n');
    const scrub = { repair: 'no', bytesPerSecond: 1e9 } as const;
    const host = test.reopen({ config: { scrub } });
    const { damage, repaired } = await start(host);
    assert.deepEqual([damage?.code, repaired], ['STATE_DAMAGED', undefined]);
    assert.equal(host.ledger.read().verifiedBootId, undefined, 'scanned in full again at the next start');
    assert.equal(test.read('access/policy.yaml'), 'VERSION: 1\n');
    const known = await cycleOn(host);
    assert.deepEqual([known.outcome, known.problems[0]?.code], ['degraded', 'STATE_DAMAGED']);
    const forced = await cycleOn(host, 'force');
    assert.deepEqual([forced.outcome, forced.generation], ['activated', 2]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.equal((await start(test.reopen({ config: { scrub } }))).damage, undefined);
    assert.equal((await cycleOn(host)).outcome, 'unchanged');
  });

  it('that cannot repair the release starts from the previous generation, and reports it', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    await test.publish('access', policy(2), { serial: 2 });
    await test.pull();
    fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 2\n');
    const archives = join(test.host.paths.archives, 'access');
    const [newest = ''] = fs.readdirSync(archives).filter((name) => name.startsWith('2-'));
    fs.rmSync(join(archives, newest, 'archive.tar.br'));
    const { damage, repaired } = await start(test.reopen());
    const codes = repaired?.result.problems.map((one) => one.code);
    assert.deepEqual(
      [damage, repaired?.result.outcome, codes],
      [undefined, 'degraded', ['REPAIRED_BY_PREVIOUS']],
    );
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('records no verification when the scan is interrupted, so the agent is not ready', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    // Aborts after the recovery, during the scan.
    const late = new AbortController();
    const host = test.reopen();
    const read: Host['ledger']['read'] = () => {
      late.abort();
      return host.ledger.read();
    };
    const ledger = { ...host.ledger, read };
    const { damage } = await startHost({ ...host, ledger }, { cycle: 'c-ab', signal: late.signal });
    assert.deepEqual([damage?.code, damage?.facts['cause']], ['STATE_DAMAGED', 'INTERRUPTED']);
    assert.notEqual(host.ledger.read().verifiedBootId, readBootId());
  });

  it('succeeds when the disk rejects the record of the verification', async () => {
    const { test } = await hostWithPolicy();
    using _ = test;
    const host = test.reopen();
    const full = (): never => {
      throw new WritError('DISK_FULL', 'full');
    };
    const { damage } = await start({ ...host, ledger: { ...host.ledger, write: full } });
    assert.equal(damage, undefined);
    assert.equal(
      (await start(test.reopen())).damage,
      undefined,
      'the trees are read in full again, and the verification is recorded',
    );
    assert.equal(test.reopen().ledger.read().verifiedBootId, readBootId());
  });

  it('reports damage that no local copy can repair, and does not fail', async () => {
    const { test, file } = await hostWithPolicy();
    using _ = test;
    fs.appendFileSync(file, '# mine');
    fs.rmSync(join(test.host.paths.archives, 'access'), { recursive: true });
    const { damage, repaired } = await start(test.reopen());
    assert.deepEqual([damage?.code, repaired?.result.problems[0]?.code], ['STATE_DAMAGED', 'REPAIR_FAILED']);
    assert.equal((await cycleOn(test.reopen())).outcome, 'activated', 'the first cycle may use the network');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('retries refused releases after a boot, and not at each start', async () => {
    const check = { kind: 'run', name: 'never', run: ['false'], timeoutMs: 60_000 } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    const retryAtMs = (): number | undefined => test.reopen().refusals.read().refusals[0]?.retryAtMs;
    assert.ok(Number(retryAtMs()) > 0);
    await start(test.reopen());
    assert.equal(retryAtMs(), 0);
    assert.equal((await cycleOn(test.reopen())).problems[0]?.code, 'CHECK_FAILED');
    await start(test.reopen());
    assert.ok(Number(retryAtMs()) > 0);
  });
});

describe('the loaders at a start', () => {
  interface Loading extends Disposable {
    readonly test: TestHost;
    /** The generation directory of each loader run. */
    runs(): string[];
    /** Sets the exit code of the loader: 0 confirms. */
    setLoaderExit(exitCode: 0 | 1): void;
  }

  async function loading(): Promise<Loading> {
    const dir = tempDir();
    const [log, verdict] = [dir.join('runs'), dir.join('verdict')];
    const script = `echo "$WRIT_GENERATION_DIR" >> ${log}; exit $(cat ${verdict})`;
    const load: HookConfig = { run: ['sh', '-c', script], timeoutMs: 60_000 };
    const test = testHost({ groups: { app: { config: { load } } } });
    const setLoaderExit = (exitCode: 0 | 1): void => fs.writeFileSync(verdict, String(exitCode));
    setLoaderExit(0);
    fs.writeFileSync(log, '');
    await test.publish('access', policy(1), { serial: 1 });
    await test.pull();
    const runs = (): string[] => fs.readFileSync(log, 'utf8').split('\n').slice(0, -1);
    const dispose = (): void => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    };
    return { test, runs, setLoaderExit, [Symbol.dispose]: dispose };
  }

  function reboot(test: TestHost): Host {
    const host = test.reopen();
    setLedger(host.ledger, { loadedBootId: 'another', verifiedBootId: 'another' });
    return test.reopen();
  }

  it('run again after a boot on the active generation, once', async () => {
    using world = await loading();
    const { test } = world;
    assert.equal(world.runs().length, 1);
    assert.equal((await start(reboot(test))).notLoaded, undefined);
    assert.deepEqual(world.runs().slice(1), [join(test.host.paths.generations, '1')]);
    await start(test.reopen());
    assert.equal(world.runs().length, 2);
  });

  it('do not run when only the agent restarted, nor after an activation in this boot', async () => {
    using world = await loading();
    await start(world.test.reopen());
    assert.equal(world.runs().length, 1);
  });

  it('that fail stay pending, are reported, and never move the policy', async () => {
    using world = await loading();
    const { test } = world;
    world.setLoaderExit(1);
    const { notLoaded, damage } = await start(reboot(test));
    assert.deepEqual([notLoaded?.code, damage], ['LOADER_PENDING', undefined]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    world.setLoaderExit(0);
    const host = test.reopen();
    assert.equal(await loadAtBoot(host, { cycle: 'c-1', signal }), undefined);
    assert.equal((await start(test.reopen())).notLoaded, undefined);
    assert.equal(world.runs().length, 3);
  });

  it('do not run on a tree that is damaged', async () => {
    using world = await loading();
    const { test } = world;
    fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 1\n');
    const host = reboot(test);
    const config = { ...host.config, scrub: { repair: 'no', bytesPerSecond: 1e9 } } as const;
    assert.equal((await start({ ...host, config })).damage?.code, 'STATE_DAMAGED');
    assert.equal(world.runs().length, 1);
  });

  it('run on an intact tree when only a retained copy is damaged', async () => {
    using world = await loading();
    const { test } = world;
    const [release = ''] = fs.readdirSync(join(test.host.paths.archives, 'access'));
    fs.truncateSync(join(test.host.paths.archives, 'access', release, 'archive.tar.br'), 9);
    const { damage } = await start(reboot(test));
    assert.equal(damage?.code, 'STATE_DAMAGED');
    assert.equal(fs.readlinkSync(test.host.paths.current), 'generations/1');
    assert.equal(world.runs().length, 2);
  });

  it('run once when recovery notified all workers already', async () => {
    using world = await loading();
    const { test } = world;
    const host = reboot(test);
    const base = { writ: 1, cycle: 'c-0', direction: 'forward', startedAtMs: 0, kind: 'update' } as const;
    writeJournal(host.paths, host.durable, { ...base, to: 1 });
    const { recovered } = await start(test.reopen());
    assert.equal(recovered?.result.outcome, 'activated');
    assert.equal(world.runs().length, 2);
  });
});
