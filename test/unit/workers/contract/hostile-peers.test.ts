// A hostile process at the socket of a worker, for each driver that connects to one. It is never confirmed, and cannot make a
// driver throw, wait beyond its deadline, or store a flood.
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { driverOf } from '../../../kit/workers/driver-stand.js';

const target = { generation: 7, path: '/policy/generations/7' };

const drivers: Readonly<Record<string, (path: string) => Driver>> = {
  kresd: (path) => driverOf({ kresd: path, command: 'policy_reset()', expect: '0', confirms: true }),
  line: (path) => driverOf({ line: path, send: 'reload', expect: 'ok', confirms: true }),
  http: (path) => driverOf({ http: { unix: path, path: '/reload' }, confirms: true }),
  supervisord: (path) => driverOf({ supervisord: path, processes: ['web:a'], signal: 'HUP' }),
};

/** Writes without end, as fast as the other side reads, and counts the bytes. */
function flood(socket: Socket, text: string, written: { bytes: number }): void {
  const chunk = Buffer.from(text.repeat(65_536));
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk)) written.bytes += chunk.length;
  };
  socket.on('drain', more);
  more();
}

type Rogue = (socket: Socket, written: { bytes: number }) => void;

const rogues: Readonly<Record<string, Rogue>> = {
  'closes at once': (socket) => void socket.destroy(),
  'closes when it is asked': (socket) => void socket.once('data', () => socket.destroy()),
  'shuts its side when it is asked': (socket) => void socket.once('data', () => socket.end()),
  'floods without a line end': (socket, written) => flood(socket, 'a', written),
  'floods when it is asked': (socket, written) => void socket.once('data', () => flood(socket, '0', written)),
  'floods with headers': (socket, written) =>
    void socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n');
      flood(socket, 'x-a: b\r\n', written);
    }),
  'floods with a body': (socket, written) =>
    void socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      flood(socket, ' ', written);
    }),
  'never sends more than a byte': (socket) => void socket.write('o'),
};

async function notifyRogue(dir: TempDir, driver: Driver, rogue: Rogue): Promise<[Answer, number]> {
  const sockets = new Set<Socket>();
  const written = { bytes: 0 };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    rogue(socket, written);
  });
  await new Promise<void>((resolve) => server.listen(dir.join('s'), resolve));
  try {
    const [worker = 's'] = await driver.members();
    return [await driver.reset(worker, { target, timeoutMs: 1000 }), written.bytes];
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Twice the longest answer of any driver, with the socket buffers. */
const maxWrittenBytes = 16_000_000;

describe('a hostile process at the socket of a worker', { concurrency: 4 }, () => {
  for (const [name, driverAt] of Object.entries(drivers)) {
    for (const [what, rogue] of Object.entries(rogues)) {
      it(`of ${name} that ${what} is unreachable`, async () => {
        using dir = tempDir();
        const [answer, bytes] = await notifyRogue(dir, driverAt(dir.join('s')), rogue);
        assert.equal(answer.kind, 'unreachable', JSON.stringify(answer));
        assert.ok(bytes < maxWrittenBytes, `${bytes} bytes`);
      });
    }
  }
});

const globs: Readonly<Record<string, (glob: string) => Driver>> = {
  kresd: drivers['kresd'] as (path: string) => Driver,
  line: drivers['line'] as (path: string) => Driver,
  http: drivers['http'] as (path: string) => Driver,
  signal: (glob) => driverOf({ signal: 'HUP', pidFile: glob }),
};

describe('a directory of workers', () => {
  for (const [name, driverAt] of Object.entries(globs)) {
    it(`of ${name} may have any names, and no link counts as a worker`, async () => {
      using dir = tempDir();
      mkdirSync(dir.join('real'));
      await makeMember(dir, name, 'real/a');
      mkdirSync(dir.join('set'));
      const names = ['*', '[a]', 'a\nb', '{b,c}', '\u001b[2J'];
      for (const one of names) await makeMember(dir, name, `set/${one}`);
      symlinkSync('../real/a', dir.join('set/link'));
      const driver = driverAt(dir.join('set/*'));
      assert.deepEqual(await driver.members(), [...names].sort());
      for (const one of names)
        assert.equal((await driver.reset(one, { target, timeoutMs: 100 })).kind, 'unreachable');
    });
  }
});

describe('a directory above the limit of workers or files', longCase, () => {
  it('causes an error, and not a part of the members', async () => {
    using dir = tempDir(memory());
    const driver = driverOf({ signal: 'HUP', pidFile: dir.join('*.pid') });
    for (let at = 0; at < 1024; at += 1) writeFileSync(dir.join(`${at}.pid`), '');
    assert.equal((await driver.members()).length, 1024);
    writeFileSync(dir.join('1024.pid'), '');
    await rejectsCode('WORKER_UNREACHABLE', driver.members());
    const others = driverOf({ signal: 'HUP', pidFile: dir.join('*.other') });
    assert.deepEqual(await others.members(), []);
    for (let at = 0; at < 15_360; at += 1) writeFileSync(dir.join(String(at)), '');
    await rejectsCode('WORKER_UNREACHABLE', others.members());
  });
});

/** An empty pid file for `signal`, otherwise a socket without a process. */
async function makeMember(dir: TempDir, driver: string, name: string): Promise<void> {
  if (driver === 'signal') writeFileSync(dir.join(name), '');
  else await leaveStaleSocket(dir.join(name));
}
