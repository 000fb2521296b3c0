import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { listenUnix } from '../../../../src/platform/net/unix-socket.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { observed } from '../../../kit/disk/observed-fs.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const ignore = (): void => undefined;
async function greetingAt(path: string): Promise<string> {
  const socket = createConnection({ path });
  try {
    return await new Promise((resolve, reject) => {
      socket.once('data', (chunk) => resolve(chunk.toString()));
      socket.once('error', reject);
    });
  } finally {
    socket.destroy();
  }
}

const durable = createDurableFs();
const notRoot = process.getuid?.() === 0 ? false : 'only root can give a file to any group';

describe('listening on a unix socket', () => {
  it('gives the file exactly the mode that was asked for, whatever the umask', async () => {
    using dir = tempDir();
    const inherited = process.umask(0);
    try {
      for (const mode of [0o600, 0o660]) {
        const listener = await listenUnix({ path: dir.join('s'), mode, durable, onConnection: ignore });
        assert.equal(lstatSync(dir.join('s')).mode & 0o7777, mode);
        assert.equal(process.umask(), 0);
        await listener.close();
        assert.equal(existsSync(dir.join('s')), false);
      }
    } finally {
      process.umask(inherited);
    }
  });

  it('lets only its owner connect before it has its mode', async () => {
    using dir = tempDir();
    const seen: string[] = [];
    const watching = createDurableFs({
      before: ({ op }) => seen.push(`${op} ${(lstatSync(dir.join('s')).mode & 0o777).toString(8)}`),
    });
    const inherited = process.umask(0);
    try {
      const gid = process.getgid?.() ?? 0;
      const options = { path: dir.join('s'), mode: 0o666, gid, durable: watching, onConnection: ignore };
      await (await listenUnix(options)).close();
    } finally {
      process.umask(inherited);
    }
    assert.deepEqual(seen, ['socket.group 600', 'socket.mode 600']);
  });

  it('takes the path of a dead process over', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('s'));
    const listener = await listenUnix({
      path: dir.join('s'),
      mode: 0o600,
      durable,
      onConnection: (socket) => void socket.end('new'),
    });
    assert.equal(await greetingAt(dir.join('s')), 'new');
    await listener.close();
  });

  it('does not replace a socket with a listener', async () => {
    using dir = tempDir();
    const first = await listenUnix({
      path: dir.join('s'),
      mode: 0o600,
      durable,
      onConnection: (socket) => void socket.end('first'),
    });
    await rejectsCode(
      'SOCKET_IN_USE',
      listenUnix({ path: dir.join('s'), mode: 0o600, durable, onConnection: ignore }),
    );
    assert.equal(await greetingAt(dir.join('s')), 'first');
    await first.close();
  });

  it('never removes what is no socket', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('s'), 'precious');
    await rejectsCode(
      'SOCKET_IN_USE',
      listenUnix({ path: dir.join('s'), mode: 0o600, durable, onConnection: ignore }),
    );
    assert.equal(readFileSync(dir.join('s'), 'utf8'), 'precious');
  });

  it('refuses a path that the kernel would cut off', async () => {
    using dir = tempDir();
    const path = dir.join('s'.repeat(108 - Buffer.byteLength(dir.join('x')) + 1));
    assert.equal(Buffer.byteLength(path), 108);
    await rejectsCode(
      'SOCKET_PATH_TOO_LONG',
      listenUnix({ path, mode: 0o600, durable, onConnection: ignore }),
    );
    const fits = path.slice(0, 107);
    const listener = await listenUnix({ path: fits, mode: 0o600, durable, onConnection: ignore });
    assert.ok(lstatSync(fits).isSocket());
    await listener.close();
  });

  it('has its mode from the beginning, and is not changed later', async () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    const path = dir.join('s');
    for (const mode of [0o600, 0o660]) {
      const listener = await listenUnix({ path, mode, durable: disk, onConnection: ignore });
      assert.equal(lstatSync(path).mode & 0o7777, mode);
      await listener.close();
    }
    assert.deepEqual(calls, []);
  });

  it('is open to its owner alone until it belongs to its group', { skip: notRoot }, async () => {
    using dir = tempDir();
    const path = dir.join('s');
    const seen: string[] = [];
    const look = ({ op }: { op: string }): void => {
      const { mode, gid } = lstatSync(path);
      seen.push(`${op} ${(mode & 0o777).toString(8)} ${gid}`);
    };
    const watched = createDurableFs({ before: look });
    const listener = await listenUnix({ path, mode: 0o660, gid: 60, durable: watched, onConnection: ignore });
    look({ op: 'at last' });
    assert.deepEqual(seen, ['socket.group 600 0', 'socket.mode 600 60', 'at last 660 60']);
    await listener.close();
  });

  const swaps = [
    ['follows no link that comes into its place before its group', 'socket.group'],
    ['follows no link that comes into its place before its mode', 'socket.mode'],
  ] as const;
  for (const [what, op] of swaps) {
    it(what, { skip: notRoot }, async () => {
      using dir = tempDir();
      const [path, secret] = [dir.join('s'), dir.join('secret')];
      writeFileSync(secret, 'of root', { mode: 0o600 });
      const swapping = createDurableFs({
        before: (operation) => {
          if (operation.op !== op) return;
          unlinkSync(path);
          symlinkSync(secret, path);
        },
      });
      const listening = listenUnix({ path, mode: 0o660, gid: 60, durable: swapping, onConnection: ignore });
      await listening.then((listener) => listener.close()).catch(() => undefined);
      const { mode, gid } = lstatSync(secret);
      assert.deepEqual([(mode & 0o777).toString(8), gid], ['600', 0]);
    });
  }

  it('is refused if another user could replace it', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('open'));
    chmodSync(dir.join('open'), 0o777);
    const path = dir.join('open/s');
    await rejectsCode('PATH_UNSAFE', listenUnix({ path, mode: 0o600, durable, onConnection: ignore }));
    assert.equal(existsSync(path), false);
  });

  it('reports that the system does not let it listen', async () => {
    using dir = tempDir();
    await rejectsCode(
      'LISTEN_FAILED',
      listenUnix({ path: dir.join('missing/s'), mode: 0o600, durable, onConnection: ignore }),
    );
  });
});
