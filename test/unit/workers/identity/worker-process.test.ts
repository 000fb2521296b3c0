// Real processes, found by the sockets and pid files that they have.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, it } from 'node:test';
import type { Driver } from '../../../../src/workers/contract/driver.js';
import { command } from '../../../../src/workers/drivers/command.js';
import { http } from '../../../../src/workers/drivers/http.js';
import { line } from '../../../../src/workers/drivers/line.js';
import { signal } from '../../../../src/workers/drivers/signal.js';
import { createWorkerProcess } from '../../../../src/workers/identity/worker-process.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { stubSystemctl } from '../../../kit/programs/stub-systemctl.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { startFakeWorker } from '../../../kit/workers/fake-worker.js';

const target = { generation: 7, path: '/policy/generations/7' };
const reset = { target, timeoutMs: 10_000 };

interface Listener {
  readonly pid: number;
  readonly port: number;
  readonly children: readonly number[];
  kill(): Promise<void>;
}

/** A process that listens, and children that inherit its socket. */
const program = `
const { createServer } = require('node:http');
const { spawn } = require('node:child_process');
const [place, count, leaves] = process.argv.slice(1);
const server = createServer((_, response) => response.end('ok'));
server.listen(Number.isNaN(Number(place)) ? place : { port: Number(place), host: '127.0.0.1' }, () => {
  const children = Array.from({ length: Number(count) }, () =>
    spawn('sleep', ['600'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', server._handle.fd] }));
  for (const child of children) child.unref();
  const { port } = server.address();
  console.log(JSON.stringify({ pid: process.pid, port, children: children.map((one) => one.pid) }));
  if (leaves === 'leaves') setTimeout(() => process.exit(0), 50);
});
`;

async function listen(place: string | number, childCount = 0, habit = 'stays'): Promise<Listener> {
  const argv = ['-e', program, String(place), String(childCount), habit];
  const child: ChildProcess = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const text = await new Promise<string>((resolve) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString()));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  if (habit === 'leaves') await ended;
  const said: Omit<Listener, 'kill'> = JSON.parse(text);
  return {
    ...said,
    kill: async () => {
      for (const pid of said.children) process.kill(pid, 'SIGKILL');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function httpDriver(port: number): Driver {
  return http.create({ http: `http://127.0.0.1:${port}/reload`, confirms: true }, driverContext());
}

describe('the identity of an http worker on this host', () => {
  it('is its process, and another one after a restart', longCase, async () => {
    const first = await listen(0);
    const driver = httpDriver(first.port);
    const [worker = ''] = await driver.members();
    const before = await driver.identity?.(worker);
    assert.match(before ?? '', new RegExp(`^${first.pid}@\\d+$`));
    assert.equal(await driver.identity?.(worker), before);
    await first.kill();
    assert.equal(await driver.identity?.(worker), undefined);
    const second = await listen(first.port);
    await driver.reset(worker, reset);
    const after = await driver.identity?.(worker);
    assert.match(after ?? '', new RegExp(`^${second.pid}@`));
    assert.equal(await driver.pid?.(worker), second.pid);
    await second.kill();
  });

  it('is not known for a worker on another host, or with `process: none`', () => {
    const far = http.create({ http: 'http://192.0.2.1:9090/reload' }, driverContext());
    assert.equal(far.identity, undefined);
    const process = { place: { kind: 'none' } } as const;
    const none = http.create({ http: 'http://127.0.0.1:9090/reload' }, driverContext({ process }));
    assert.equal(none.identity, undefined);
  });

  it('is the master if its children hold the same socket', async () => {
    const master = await listen(0, 3);
    assert.equal(await httpDriver(master.port).pid?.('w'), master.pid);
    await master.kill();
  });

  it('is not known where several processes hold the socket and none started the others', async () => {
    const supervisor = await listen(0, 2, 'leaves');
    const found = await httpDriver(supervisor.port).process?.('w');
    assert.equal(found?.kind, 'unknown');
    assert.match(found?.kind === 'unknown' ? found.reason : '', /none of them started all the others/);
    await supervisor.kill();
  });

  it('is not known where the process does not run `program`', async () => {
    const listener = await listen(0);
    const address = `http://127.0.0.1:${listener.port}/`;
    const withProgram = (name: string): Driver =>
      http.create({ http: address }, driverContext({ process: { program: name } }));
    assert.equal(await withProgram('nginx').identity?.('w'), undefined);
    assert.equal(await withProgram(basename(process.execPath)).pid?.('w'), listener.pid);
    assert.equal(await withProgram(process.execPath).pid?.('w'), listener.pid);
    await listener.kill();
  });
});

describe('the identity of a line worker', longCase, () => {
  it('is the process that listens on its socket, and no longer the one that did', async () => {
    using dir = tempDir();
    const first = await listen(dir.join('s'));
    const driver = line.create({ line: dir.join('*'), send: 'reload' }, driverContext());
    assert.equal(await driver.pid?.('s'), first.pid);
    // The process continues with a socket that has no path any more.
    rmSync(dir.join('s'));
    const second = await listen(dir.join('s'));
    const found = await driver.process?.('s');
    assert.equal(found?.kind, 'unknown', 'both have a socket that was bound to this path');
    await first.kill();
    await driver.reset('s', { ...reset, timeoutMs: 100 });
    assert.equal(await driver.pid?.('s'), second.pid);
    await second.kill();
  });
});

describe('a process that was found', () => {
  it('is kept without another search, and a worker without a socket is searched for each second', async () => {
    const clock = fakeClock();
    const first = await listen(0);
    const searches = countSearches(first.port);
    const process = createWorkerProcess({ listensAt: searches.listensAt }, { clock });
    for (let observation = 0; observation < 5; observation++)
      assert.equal((await process?.find('w'))?.kind, 'found');
    assert.equal(searches.count(), 1);
    await first.kill();
    for (let second = 0; second < 5; second++) {
      for (let call = 0; call < 3; call++) assert.equal((await process?.find('w'))?.kind, 'dead');
      assert.equal(searches.count(), 2 + second);
      await clock.advance(1000);
    }
    const restarted = await listen(first.port);
    assert.equal((await process?.find('w'))?.kind, 'found');
    await restarted.kill();
  });

  it('is searched for with growing gaps while another program has the socket', async () => {
    const clock = fakeClock();
    const stranger = await listen(0);
    const searches = countSearches(stranger.port);
    const group = { process: { program: 'nginx' }, listensAt: searches.listensAt };
    const process = createWorkerProcess(group, { clock });
    assert.equal((await process?.find('w'))?.kind, 'unknown');
    await clock.advance(2000);
    await process?.find('w');
    assert.equal(searches.count(), 2);
    await clock.advance(3999);
    await process?.find('w');
    assert.equal(searches.count(), 2);
    process?.searchNow('w');
    await process?.find('w');
    assert.equal(searches.count(), 3);
    await stranger.kill();
  });
});

function countSearches(port: number): {
  readonly listensAt: () => { readonly host: string; readonly port: number };
  readonly count: () => number;
} {
  let count = 0;
  const listensAt = () => {
    count += 1;
    return { host: '127.0.0.1', port };
  };
  return { listensAt, count: () => count };
}

describe('a pid file', () => {
  it('certainly names no process if the process began after the file was written', async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('pid'), String(worker.pid));
    // The number was used again: the file is of a process before this boot.
    utimesSync(dir.join('pid'), 1_000_000_000, 1_000_000_000);
    const driver = signal.create({ signal: 'HUP', pidFile: dir.join('pid') }, driverContext());
    const answer = await driver.reset('pid', reset);
    assert.deepEqual([answer.kind, answer.code], ['unreachable', 'PROCESS_UNKNOWN']);
    assert.match(answer.text, /began after the file was written: give `process.program`/);
    assert.equal(await driver.identity?.('pid'), undefined);
    assert.equal(await driver.liveness?.('pid'), 'unknown');
    const named = driverContext({ process: { program: basename(process.execPath) } });
    const sure = signal.create({ signal: 'HUP', pidFile: dir.join('pid') }, named);
    assert.equal((await sure.reset('pid', reset)).kind, 'notified');
    await worker.gotSignals(1);
    assert.deepEqual(worker.signals(), ['SIGHUP']);
    await worker.kill();
  });

  it('certainly names no process if the process does not run `program`', async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('pid'), String(worker.pid));
    const context = driverContext({
      process: { place: { kind: 'pidFile', path: dir.join('pid') }, program: 'named' },
    });
    const answer = await signal.create({ signal: 'HUP' }, context).reset('pid', reset);
    assert.deepEqual([answer.kind, answer.code], ['unreachable', 'PROCESS_UNKNOWN']);
    assert.deepEqual(readFileSync(dir.join('log'), 'utf8'), '');
    await worker.kill();
  });
});

describe('the signal driver by `process`', () => {
  it('signals the process that listens', longCase, async () => {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    const listener = await listen(dir.join('s'));
    const process = { place: { kind: 'listens', address: dir.join('s') } } as const;
    const driver = signal.create({ signal: 'WINCH' }, driverContext({ process }));
    assert.deepEqual(await driver.members(), ['s']);
    const answer = await driver.reset('s', reset);
    assert.deepEqual(answer, { kind: 'notified', text: `SIGWINCH sent to process ${listener.pid}` });
    await listener.kill();
    assert.equal((await driver.reset('s', reset)).kind, 'unreachable');
    assert.equal(await driver.liveness?.('s'), 'dead');
    assert.deepEqual(worker.signals(), []);
    await worker.kill();
  });

  it('needs a process', () => {
    assert.throws(
      () => signal.create({ signal: 'HUP' }, driverContext()),
      /reset.signal needs `process`, or `pidFile`/,
    );
  });
});

describe('a worker that is a unit', () => {
  it('is its main process, with the name of the worker filled in', async () => {
    using dir = tempDir();
    const stub = stubSystemctl(dir.path);
    const worker = await startFakeWorker(dir.join('log'));
    stub.unit('app.service', { mainPid: worker.pid });
    const unit = { place: { kind: 'unit', unit: 'app.service' } } as const;
    const context = driverContext({ programPath: stub.programPath, process: unit });
    const driver = signal.create({ signal: 'HUP' }, context);
    assert.deepEqual(await driver.members(), ['app.service']);
    assert.equal((await driver.reset('app.service', reset)).kind, 'notified');
    await worker.gotSignals(1);
    const process = { place: { kind: 'unit', unit: '{worker}.service' } } as const;
    const named = createWorkerProcess({ process }, context);
    assert.equal((await named?.find('app'))?.kind, 'found');
    assert.equal((await named?.find('a b'))?.kind, 'unknown');
    await worker.kill();
  });

  it('is dead with its unit, and unknown where systemd knows no main process or is away', async () => {
    using dir = tempDir();
    const stub = stubSystemctl(dir.path);
    stub.unit('app.service', { active: 'failed' });
    stub.unit('job.service');
    const find = async (unit: string, programPath = stub.programPath) => {
      const process = { place: { kind: 'unit', unit } } as const;
      return (await createWorkerProcess({ process }, driverContext({ programPath }))?.find('w'))?.kind;
    };
    assert.equal(await find('app.service'), 'dead');
    assert.equal(await find('job.service'), 'unknown');
    assert.equal(await find('app.service', '/nonexistent'), 'unknown');
  });
});

describe('the record of a worker that is a unit', () => {
  const counters = (restarts: number): readonly string[] => [`NRestarts=${restarts}`, 'Restart=on-failure'];
  const limits = ['StartLimitBurst=5', 'StartLimitIntervalUSec=10s'];
  const place = { kind: 'unit', unit: '{worker}.service' } as const;
  const kinds = {
    signal: () => ({ kind: signal, options: { signal: 'HUP' } }),
    line: (folder: string) => ({ kind: line, options: { line: `${folder}/s`, send: 'reload' } }),
    http: () => ({ kind: http, options: { http: 'http://127.0.0.1:9/reload' } }),
    run: () => ({ kind: command, options: { run: ['true'] } }),
  };

  for (const [name, make] of Object.entries(kinds))
    it(`counts the ends that systemd recorded, and names its failure, with ${name}`, async () => {
      using dir = tempDir();
      const stub = stubSystemctl(dir.path);
      const { kind, options } = make(dir.path);
      const driver = kind.create(
        options,
        driverContext({ programPath: stub.programPath, process: { place } }),
      );
      stub.unit('app.service', { more: counters(0) });
      const first = await driver.endsSince?.('app', undefined);
      assert.equal(first?.abnormal, 0);
      assert.equal(await driver.failure?.('app'), undefined);
      stub.unit('app.service', { invocation: 'bb22', more: counters(2) });
      const { mark: _, ...later } = (await driver.endsSince?.('app', first?.mark)) ?? {};
      assert.deepEqual(later, { abnormal: 2, clean: 0, unrecorded: 0 });
      stub.unit('app.service', { active: 'failed', more: [...counters(2), ...limits, 'Result=signal'] });
      assert.deepEqual(await driver.failure?.('app'), {
        hasGivenUp: 'yes',
        text: 'app.service is failed (Result=signal) after 2 automatic restarts; its start limit: StartLimitBurst=5 in StartLimitIntervalSec=10s',
        command: 'systemctl reset-failed app.service && systemctl start app.service',
      });
    });

  it('is undefined for a pid file, for an invalid unit name, and without systemctl', async () => {
    using dir = tempDir();
    const byFile = signal.create({ signal: 'HUP', pidFile: dir.join('pid') }, driverContext());
    assert.deepEqual([byFile.endsSince, byFile.failure], [undefined, undefined]);
    const away = signal.create(
      { signal: 'HUP' },
      driverContext({ programPath: '/nonexistent', process: { place } }),
    );
    for (const worker of ['app', 'a b']) {
      assert.equal(await away.endsSince?.(worker, undefined), undefined);
      assert.equal(await away.failure?.(worker), undefined);
    }
  });
});

describe('a check of known processes', () => {
  it('costs less than a millisecond of a processor, of each kind', async () => {
    using dir = tempDir();
    const listener = await listen(dir.join('s'));
    writeFileSync(dir.join('pid'), String(listener.pid));
    const places = [
      { kind: 'listens', address: dir.join('s') },
      { kind: 'pidFile', path: dir.join('pid') },
    ] as const;
    for (const place of places) {
      const kept = createWorkerProcess({ process: { place } }, driverContext());
      await kept?.find('w');
      const before = process.cpuUsage();
      for (let look = 0; look < 100; look++) assert.equal((await kept?.find('w'))?.kind, 'found');
      const { user, system } = process.cpuUsage(before);
      assert.ok((user + system) / 1000 < 100, `${place.kind}: ${(user + system) / 100} us`);
    }
    await listener.kill();
  });
});
