// Daemons that lie, with each driver: an answer is never reported as proof of the used generation.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { driverKinds } from '../../../src/workers/registry.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { stubSystemctl } from '../../kit/programs/stub-systemctl.js';
import { driverContext } from '../../kit/workers/driver-context.js';
import { driverOf } from '../../kit/workers/driver-stand.js';
import { startFakeHttpWorker } from '../../kit/workers/fake-http-worker.js';
import { startFakeKresd } from '../../kit/workers/fake-kresd.js';
import { startFakeLineServer } from '../../kit/workers/fake-line-server.js';
import { startFakeMaster } from '../../kit/workers/fake-master.js';
import { startFakeSupervisord, xmlArray, xmlProcess, xmlTrue } from '../../kit/workers/fake-supervisord.js';
import { joinAs } from '../../kit/workers/raw-worker.js';
import { type Honesty, type LyingDaemon, lyingDaemon } from './lying-daemon.js';

interface Liar {
  readonly driver: Driver;
  close(): Promise<void>;
}

/** Accepts by the protocol of one driver, and calls the daemon of the test. */
type StartLiar = (dir: TempDir, daemon: () => LyingDaemon) => Promise<Liar>;

const running = { group: 'web', name: 'a', state: 20, stateName: 'RUNNING', pid: 7 };

/** A shell cannot call the daemon of the test, so this one reads its honesty from a file. */
const script = (dir: TempDir): string => `
  case "$(cat ${dir.join('honesty')})" in
    honest) readlink -f ${dir.join('policy')}/current > ${dir.join('new')}; tr -d '\\n' < ${dir.join('new')} > ${dir.join('in-use')} ;;
    dies) rm -f ${dir.join('in-use')} ;;
  esac
  exit 0`;

const liars: Readonly<Record<string, StartLiar>> = {
  kresd: async (dir, daemon) => {
    const answer = (): string => {
      daemon().notified();
      return '0';
    };
    const fake = await startFakeKresd(dir.join('s'), { answer });
    return {
      ...fake,
      driver: driverOf({ kresd: dir.join('s'), command: 'policy_reset()', expect: '0', confirms: true }),
    };
  },
  line: async (dir, daemon) => {
    const answer = (): string => `uses ${daemon().notified()}`;
    const fake = await startFakeLineServer(dir.join('s'), { habit: 'unbound', answer });
    const options = { send: 'reload', expect: 'uses {generation}', confirms: true };
    return { ...fake, driver: driverOf({ line: dir.join('s'), ...options }) };
  },
  http: async (dir, daemon) => {
    const answer = (): { body: string } => ({ body: `uses ${daemon().notified()}` });
    const fake = await startFakeHttpWorker(answer, { path: dir.join('s') });
    const http = { unix: dir.join('s'), path: '/reload' };
    return { ...fake, driver: driverOf({ http, expect: 'uses {generation}', confirms: true }) };
  },
  supervisord: async (dir, daemon) => {
    const fake = await startFakeSupervisord(dir.join('s'), (method) => {
      if (method === 'signalProcess') daemon().notified();
      if (method === 'getAllProcessInfo') return xmlArray([xmlProcess(running)]);
      return method === 'getProcessInfo' ? xmlProcess(running) : xmlTrue;
    });
    return { ...fake, driver: driverOf({ supervisord: dir.join('s'), group: 'web', signal: 'HUP' }) };
  },
  native: async (dir, daemon) => {
    const driver = driverOf({ native: 'app' }, driverContext({ runDirectory: dir.path }));
    await driver.open?.();
    const worker = await joinAs(dir.join('workers/app.sock'), 'a');
    const answer = async (): Promise<void> => {
      for (;;) {
        const { id, generation } = JSON.parse(await worker.line());
        daemon().notified();
        worker.send({ type: 'ack', id, generation });
      }
    };
    answer().catch(() => undefined);
    while ((await driver.members()).length === 0) await new Promise((resolve) => setImmediate(resolve));
    const close = async (): Promise<void> => {
      worker.end();
      await driver.close?.();
    };
    return { driver, close };
  },
  signal: async (dir) => {
    mkdirSync(dir.join('master'));
    const master = await startFakeMaster(dir.join('master'), 'replaces', script(dir));
    return {
      driver: driverOf({ signal: 'HUP', pidFile: master.pidFile, proof: 'children' }),
      close: async () => master[Symbol.asyncDispose](),
    };
  },
  run: async (dir) => ({
    driver: driverOf({ run: ['sh', '-c', script(dir)], confirms: true }),
    close: async () => undefined,
  }),
  systemd: async (dir) => {
    mkdirSync(dir.join('stub'));
    const stub = stubSystemctl(dir.join('stub'));
    stub.unit('app.service');
    stub.job(script(dir));
    const context = driverContext({ programPath: stub.programPath });
    return {
      driver: driverOf({ systemd: 'app.service', confirms: true }, context),
      close: async () => undefined,
    };
  },
};

interface Play {
  readonly test: TestHost;
  readonly daemon: LyingDaemon;
  readonly become: (honesty: Honesty) => void;
}

/** Version 1 is active and honestly in use; version 2 is published. */
async function withLiar(
  start: StartLiar,
  probe: 'probed' | 'unprobed',
  play: (play: Play) => Promise<void>,
): Promise<void> {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  let daemon: LyingDaemon | undefined;
  const liar = await start(dir, () => daemon ?? assert.fail('notified before the test began'));
  const ask = ['sh', '-c', `test "$(cat ${dir.join('in-use')})" = "$WRIT_GENERATION_DIR"`] as const;
  // Long, because an honest daemon may be slow on a busy machine.
  const reset = { driver: 'scripted', options: {}, timeoutMs: 60_000, min: 0 };
  const config = {
    reset,
    ...(probe === 'probed' ? { probe: { run: ask, timeoutMs: 60_000, retry: 0 } } : {}),
  };
  using test = testHost({ groups: { app: { driver: liar.driver, config } } });
  daemon = lyingDaemon(dir.join('in-use'), test.host.paths.current);
  const become = (honesty: Honesty): void => {
    if (daemon !== undefined) daemon.honesty = honesty;
    writeFileSync(dir.join('honesty'), honesty);
  };
  try {
    become('honest');
    linkPolicy(dir, test);
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    await play({ test, daemon, become });
  } finally {
    await liar.close();
  }
}

/** Scripts find the policy by a link in their own directory. */
function linkPolicy(dir: TempDir, test: TestHost): void {
  writeFileSync(dir.join('in-use'), '');
  symlinkSync(test.host.paths.policy, dir.join('policy'));
}

for (const [name, start] of Object.entries(liars)) {
  describe(`a daemon behind ${name}, with a probe`, longCase, () => {
    it('is confirmed if it is honest', () =>
      withLiar(start, 'probed', async ({ test }) => {
        const result = await test.pull();
        assert.deepEqual([result.outcome, result.confirmed], ['activated', true]);
      }));

    it('is not confirmed if it accepts and changes nothing, or loads the old generation', async () => {
      for (const honesty of ['changes nothing', 'old generation'] as const) {
        await withLiar(start, 'probed', async ({ test, become }) => {
          become(honesty);
          const result = await test.pull();
          assert.equal(result.outcome, 'rolled-back', honesty);
          assert.equal(result.problems[0]?.code, 'PROBE_FAILED');
          assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
        });
      }
    });

    it('is not confirmed if it accepts and dies', () =>
      withLiar(start, 'probed', async ({ test, become, daemon }) => {
        become('dies');
        const result = await test.pull();
        assert.ok(['blocked', 'rolled-back', 'degraded'].includes(result.outcome), result.outcome);
        assert.notEqual(result.confirmed, true);
        assert.equal(daemon.uses(), undefined);
        assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
      }));
  });
}

describe('the table of liars', longCase, () => {
  it('has every driver', () =>
    assert.deepEqual(Object.keys(liars).sort(), driverKinds.map((kind) => kind.name).sort()));
});

describe('a daemon without a probe', longCase, () => {
  it('is never confirmed if its answers prove nothing', () =>
    withLiar(liars['supervisord'] as StartLiar, 'unprobed', async ({ test, become }) => {
      become('changes nothing');
      const result = await test.pull();
      assert.deepEqual([result.outcome, result.confirmed], ['activated', false]);
      assert.deepEqual(
        result.workers.map((one) => one.state),
        ['notified'],
      );
    }));
});
