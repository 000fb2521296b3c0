import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  monotonicUsec,
  openNotifier,
  waitsForReader,
  watchdogMs,
} from '../../../../src/platform/telemetry/sd-notify.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { logLines } from '../../../kit/assert/log-lines.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { listenForNotices } from '../../../kit/net/notify-listener.js';
import { needs } from '../../../kit/programs/real-programs.js';

const python = needs('python3', 'python3');
const program = needs('systemd-notify', 'systemd');
const real = { ...python, ...program };

describe('the notifier of the service manager', () => {
  it('is undefined without NOTIFY_SOCKET', () => {
    assert.equal(openNotifier({ env: {}, pid: 1, log: silentLog() }), undefined);
    assert.equal(openNotifier({ env: { NOTIFY_SOCKET: '' }, pid: 1, log: silentLog() }), undefined);
  });

  it(
    'sends the lines of one notification in one datagram, and notifications in their order',
    real,
    async () => {
      using dir = tempDir();
      await using manager = await listenForNotices(dir.join('notify'));
      const notifier = openNotifier({ env: { NOTIFY_SOCKET: manager.socket }, pid: 1, log: silentLog() });
      const all = [
        notifier?.notify(['READY=1', 'STATUS=one line\nWATCHDOG=trigger']),
        notifier?.notify(['WATCHDOG=1']),
        notifier?.notify(['STOPPING=1']),
      ];
      assert.deepEqual(await Promise.all(all), ['sent', 'sent', 'sent']);
      await manager.has('STOPPING=1');
      assert.deepEqual(
        manager.datagrams.map(({ lines }) => lines),
        [['READY=1', 'STATUS=one line WATCHDOG=trigger'], ['WATCHDOG=1'], ['STOPPING=1']],
      );
    },
  );

  it('is idle when every notification is sent', real, async () => {
    using dir = tempDir();
    await using manager = await listenForNotices(dir.join('notify'));
    const notifier = openNotifier({ env: { NOTIFY_SOCKET: manager.socket }, pid: 1, log: silentLog() });
    for (let count = 0; count < 5; count += 1) void notifier?.notify([`STATUS=${count}`]);
    await notifier?.idle();
    await manager.has('STATUS=4');
    assert.equal(manager.datagrams.length, 5);
  });

  it('warns once without a listener, and again after a success in between', real, async () => {
    using dir = tempDir();
    const { log, lines } = logLines();
    const env = { NOTIFY_SOCKET: dir.join('notify') };
    const notifier = openNotifier({ env, pid: 1, log });
    assert.equal(await notifier?.notify(['READY=1']), 'failed');
    assert.equal(await notifier?.notify(['READY=1']), 'failed');
    assert.equal(lines.length, 1);
    await using _manager = await listenForNotices(env.NOTIFY_SOCKET);
    assert.equal(await notifier?.notify(['READY=1']), 'sent');
  });

  it('warns once if the program is missing, and does not search for it again', async () => {
    using dir = tempDir();
    const { log, lines } = logLines();
    const env = { NOTIFY_SOCKET: dir.join('notify') };
    const notifier = openNotifier({ env, pid: 1, log, path: dir.path });
    assert.equal(await notifier?.notify(['READY=1']), 'failed');
    assert.equal(await notifier?.notify(['STOPPING=1']), 'failed');
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.['level'], 40);
  });

  it('waits for the barrier of systemd alone', () => {
    assert.equal(waitsForReader('/run/systemd/notify'), true);
    assert.equal(waitsForReader('/run/user/1000/systemd/notify'), true);
    for (const other of ['/run/notify/notify.sock', '@/run/systemd/notify', '/tmp/run/systemd/notify'])
      assert.equal(waitsForReader(other), false, other);
  });
});

describe('the watchdog of the environment', () => {
  it('is for this process without a pid, or with its pid', () => {
    assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000' }, 7), 30_000);
    assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 7), 30_000);
    assert.equal(watchdogMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, 7), undefined);
  });

  it('is undefined for an invalid time', () => {
    for (const usec of [undefined, '', '0', '-5', '1e6', 'x'])
      assert.equal(watchdogMs({ WATCHDOG_USEC: usec }, 7), undefined);
  });
});

describe('the monotonic clock', longCase, () => {
  it('is equal to that of other processes on this machine', python, async () => {
    using dir = tempDir();
    await using manager = await listenForNotices(dir.join('notify'));
    const notifier = openNotifier({ env: { NOTIFY_SOCKET: manager.socket }, pid: 1, log: silentLog() });
    const before = Number(monotonicUsec());
    await notifier?.notify(['READY=1']);
    await manager.has('READY=1');
    const came = manager.datagrams[0]?.usec ?? 0;
    assert.ok(before <= came && came <= Number(monotonicUsec()), `${before} ${came}`);
  });
});
