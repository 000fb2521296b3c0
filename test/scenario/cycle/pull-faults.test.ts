// `writ pull` as a user runs it, with a faulty repository, server or host: the code, the exit code, an unchanged policy, and a
// text that names the active one.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { signMetadata } from '../../../src/publisher/keys/signer.js';
import { openOnlineSigners } from '../../../src/publisher/signing/online-signing.js';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, type WritRun } from '../../kit/cli/run-writ.js';
import type { Bend } from '../../kit/net/serve-repository.js';
import { encodeEnvelope, isoTime, makeKey, signWith } from '../../kit/repository/repository-simulator.js';
import { type PullFault, pullFaultTable } from './pull-fault-table.js';

let installed: InstalledHost;
before(async () => {
  installed = await installHost();
});
after(() => installed[Symbol.dispose]());

const table = (title: string, faults: readonly PullFault[]): void =>
  pullFaultTable(title, faults, () => installed);

const metadata = (host: InstalledHost, name: string): string => join(host.repository, 'metadata', name);

function archiveOf(host: InstalledHost): string {
  const folder = join(host.repository, 'targets', 'dns-edge');
  const targets = JSON.parse(readFileSync(metadata(host, '3.targets.json'), 'utf8'));
  const { sha256 } = targets.signed.targets['dns-edge/stable.tar.br'].hashes;
  return join(folder, readdirSync(folder).find((name) => name.startsWith(sha256)) ?? 'none');
}

function forgeTimestamp(host: InstalledHost): void {
  const path = metadata(host, 'timestamp.json');
  const { signed, signatures } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, encodeEnvelope(signWith([{ ...makeKey(), id: signatures[0].keyid }], signed), signed));
}

/** A timestamp of the right key that expired yesterday. */
async function oldTimestamp(host: InstalledHost): Promise<void> {
  const path = metadata(host, 'timestamp.json');
  const { signed } = JSON.parse(readFileSync(path, 'utf8'));
  const passphrases = { ask: async () => undefined };
  const { timestamp } = await openOnlineSigners(host.repository, { path: host.keys, passphrases });
  const daysAgo = (days: number): string => isoTime(Date.now() - days * 86_400_000);
  const old = { version: signed.version + 1, expires: daysAgo(1), writ: { signedAt: daysAgo(8) } };
  writeFileSync(path, await signMetadata({ ...signed, ...old }, timestamp));
}

table('a repository that somebody has touched', [
  {
    name: 'one byte of the archive is another',
    code: 'DOWNLOAD_DIGEST',
    exit: 1,
    harm: (host) => {
      const path = archiveOf(host);
      const bytes = readFileSync(path);
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      writeFileSync(path, bytes);
    },
  },
  {
    name: 'the archive is cut',
    code: 'DOWNLOAD_TRUNCATED',
    exit: 1,
    harm: (host) => truncateSync(archiveOf(host), 20),
  },
  {
    name: 'the archive goes on',
    code: 'DOWNLOAD_TOO_LARGE',
    exit: 1,
    harm: (host) => appendFileSync(archiveOf(host), 'x'),
  },
  { name: 'the archive is gone', code: 'TARGET_MISSING', exit: 1, harm: (host) => rmSync(archiveOf(host)) },
  {
    name: 'the timestamp is signed by a foreign key',
    code: 'SIGNATURE_THRESHOLD',
    exit: 1,
    harm: forgeTimestamp,
  },
  { name: 'the timestamp has expired', code: 'METADATA_EXPIRED', exit: 1, harm: oldTimestamp },
  {
    name: 'the targets are edited by hand',
    code: 'METADATA_MIX',
    exit: 1,
    harm: (host) => {
      const path = metadata(host, '3.targets.json');
      writeFileSync(path, readFileSync(path, 'utf8').replace('"serial":2', '"serial":9'));
    },
  },
  {
    name: 'the timestamp is gone',
    code: 'METADATA_MISSING',
    exit: 1,
    harm: (host) => rmSync(metadata(host, 'timestamp.json')),
  },
]);

const isTimestamp = (path: string): boolean => path === '/metadata/timestamp.json';
const isArchive = (path: string): boolean => path.startsWith('/targets/');

function status(code: number, headers: Readonly<Record<string, string>> = {}): Bend {
  return (path, response) => {
    if (isTimestamp(path)) response.writeHead(code, headers).end('no');
    return isTimestamp(path);
  };
}

table('a server that misbehaves', [
  {
    name: 'nobody listens',
    code: 'SERVER_UNREACHABLE',
    exit: 1,
    harm: (host) => host.configure({ repository: 'http://127.0.0.1:9/' }),
  },
  { name: 'it asks for quiet', code: 'SERVER_BUSY', exit: 1, server: status(503, { 'retry-after': '120' }) },
  { name: 'it has an error of its own', code: 'SERVER_ERROR', exit: 1, server: status(500) },
  { name: 'it forbids', code: 'SERVER_ERROR', exit: 1, server: status(403) },
  {
    name: 'it sends elsewhere',
    code: 'REDIRECT_REFUSED',
    exit: 1,
    server: status(302, { location: 'http://127.0.0.1:9/' }),
  },
  {
    name: 'it answers everything with a page',
    code: 'METADATA_MALFORMED',
    exit: 1,
    server: (_path, response) => {
      response.end('<html>Please accept our terms</html>');
      return true;
    },
  },
  {
    name: 'its timestamp never ends',
    code: 'DOWNLOAD_TOO_LARGE',
    exit: 1,
    server: (path, response) => {
      if (!isTimestamp(path)) return false;
      const more = (): boolean => !response.destroyed && response.write(Buffer.alloc(4096)) && more();
      response.on('drain', more).on('error', () => undefined);
      more();
      return true;
    },
  },
  {
    name: 'it cuts the archive every time',
    code: 'DOWNLOAD_TRUNCATED',
    exit: 1,
    server: (path, response, honest) => {
      if (!isArchive(path)) return false;
      const bytes = honest();
      response.writeHead(200, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 30), () => response.destroy());
      return true;
    },
  },
  {
    name: 'it says a shorter length than was signed',
    code: 'DOWNLOAD_TRUNCATED',
    exit: 1,
    server: (path, response, honest) => {
      if (isArchive(path)) response.end(honest().subarray(0, 30));
      return isArchive(path);
    },
  },
]);

const foreignRoot = (host: InstalledHost): void => {
  const path = host.dir.join('foreign.json');
  const { signed } = JSON.parse(readFileSync(metadata(host, '1.root.json'), 'utf8'));
  const keys = [makeKey(), makeKey()];
  signed.keys = Object.fromEntries(keys.map(({ id, key }) => [id, key]));
  for (const role of Object.keys(signed.roles))
    signed.roles[role] = { keyids: keys.map(({ id }) => id), threshold: 2 };
  writeFileSync(path, encodeEnvelope(signWith(keys, signed), signed));
  host.configure({ root: path });
};

table('a host that is not as it should be', [
  {
    name: 'an unknown key in the configuration',
    code: 'CONFIG_INVALID',
    exit: 2,
    begins: 'no',
    harm: (host) => host.configure({ polls: 1 }),
  },
  {
    name: 'a configuration that is no YAML',
    code: 'CONFIG_SYNTAX',
    exit: 2,
    begins: 'no',
    harm: (host) => writeFileSync(host.config, 'a: ['),
  },
  {
    name: 'no configuration',
    code: 'CONFIG_UNREADABLE',
    exit: 2,
    begins: 'no',
    harm: (host) => rmSync(host.config),
  },
  {
    name: 'no bootstrap root',
    code: 'ROOT_MISSING',
    exit: 2,
    harm: (host) => host.configure({ root: host.dir.join('none') }),
  },
  { name: 'the bootstrap root of another repository', code: 'ROOT_NOT_LINKED', exit: 2, harm: foreignRoot },
  {
    name: 'a state directory that everybody may write to',
    code: 'PATH_UNSAFE',
    exit: 2,
    begins: 'no',
    harm: ({ paths }) => chmodSync(paths.state, 0o777),
  },
  {
    name: 'another process holds the lock for longer than anybody waits',
    code: 'LOCK_HELD',
    exit: 7,
    begins: 'no',
    together: 'yes',
    harm: async ({ paths }) => {
      const holder = spawn('flock', ['-F', '-n', paths.lock, 'sh', '-c', 'echo held; exec sleep 60']);
      await once(holder.stdout, 'data');
      return holder;
    },
  },
]);

describe('a ledger that is not a regular file', longCase, () => {
  it('is reported by status, and rebuilt by the next pull, which reports it', async () => {
    using host = copyHost(installed);
    writeFileSync(join(host.paths.state, 'ledger.json'), '{');
    const notified = await host.writ('status', '--json');
    assert.equal(firstCode(notified, 'problems'), 'STATE_DAMAGED');
    assert.equal(readFileSync(join(host.paths.state, 'ledger.json'), 'utf8'), '{', 'looking mends nothing');
    const pulled = await host.writ('pull', '--json');
    const code = firstCode(pulled, 'warnings');
    assert.deepEqual([pulled.exitCode, jsonOf(pulled)['outcome'], code], [0, 'activated', 'STATE_REBUILT']);
    const history = await host.writ('history', '--json');
    assert.match(history.stdout, /STATE_REBUILT/);
    assert.equal((await host.writ('pull')).exitCode, 0);
  });
});

describe('a history that is not a regular file', longCase, () => {
  it('is reported by `writ history`, and by the next pull, which begins a new one', async () => {
    using host = copyHost(installed);
    const path = join(host.paths.state, 'history.jsonl');
    rmSync(path, { force: true });
    mkdirSync(path);
    const asked = await host.writ('history', '--json');
    assert.equal(asked.exitCode, 1);
    assert.match(asked.stdout + asked.stderr, /"code": ?"STATE_DAMAGED"/);
    const pulled = await host.writ('pull', '--json');
    assert.deepEqual([pulled.exitCode, firstCode(pulled, 'warnings')], [0, 'STATE_REBUILT']);
    const people = await host.writ('history');
    assert.match(people.stdout, /STATE_REBUILT: .*history\.jsonl: /);
    assert.equal((await host.writ('pull')).exitCode, 0);
  });
});

function firstCode(run: WritRun, list: 'problems' | 'warnings'): unknown {
  return (jsonOf(run)[list] as readonly { readonly code: string }[])[0]?.code;
}

const canMount = spawnSync('unshare', ['-m', 'true']).status === 0;
const smallDisk = 'mount -t tmpfs -o size=2548k,mode=711 none "$STATE"; cp -a "$KEPT/." "$STATE"';

describe('a disk', { skip: canMount ? false : 'only root can mount', ...longCase }, () => {
  table('that gives out', [
    {
      name: 'there is no room for the release',
      code: 'DISK_FULL',
      exit: 1,
      mounts: `${smallDisk}; head -c $(($(df --output=avail -B1 "$STATE" | tail -1) - 57344)) /dev/zero > "$STATE/filler"`,
    },
    {
      name: 'not one more byte can be written',
      code: 'DISK_FULL',
      exit: 1,
      mounts: `${smallDisk}; head -c 3000000 /dev/zero > "$STATE/filler" 2>/dev/null || true`,
    },
    {
      name: 'it is read-only',
      code: 'DISK_READ_ONLY',
      exit: 1,
      begins: 'no',
      mounts: 'mount --bind "$STATE" "$STATE"; mount -o remount,bind,ro "$STATE"',
    },
    {
      name: 'the policy lies on another one than the state',
      code: 'PATH_CROSS_DEVICE',
      exit: 2,
      begins: 'no',
      mounts: 'mount -t tmpfs -o mode=755 none "$STATE/policy"; cp -a "$KEPT/policy/." "$STATE/policy"',
    },
  ]);
});
