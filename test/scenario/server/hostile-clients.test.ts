// `writ serve` as a process with 1,024 descriptors, under clients that hold, break off and pile up what they can. Behind each
// attack descriptors and memory are back where they were, and an honest client is served as before.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import {
  getRequest,
  hostileClient,
  hostileClients,
  manyClients,
  resetAfterFirstBytes,
} from '../../kit/net/hostile-client.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

const bigFile = `targets/${'c'.repeat(64)}.big`;
const bigBytes = 2_000_000;
/** More than the buffers of both kernels take: whoever reads nothing of it keeps it open. */
const hugeFile = `targets/${'d'.repeat(64)}.huge`;
const hugeBytes = 100_000_000;
const fewDescriptors = ['sh', '-c', 'ulimit -n 1024; exec "$@"', 'sh'];

interface Site extends AsyncDisposable {
  readonly url: string;
  readonly server: WritProcess;
  descriptors(): number;
  residentBytes(): number;
}

async function startSite(dir: TempDir): Promise<Site> {
  writeRepository(dir.path);
  fs.writeFileSync(dir.join(bigFile), Buffer.alloc(bigBytes, 0x61));
  fs.writeFileSync(dir.join(hugeFile), '');
  fs.truncateSync(dir.join(hugeFile), hugeBytes);
  const args = ['serve', '--repository', dir.path, '--listen', '127.0.0.1:0', '-q'];
  const server = startWrit(args, {}, { under: fewDescriptors });
  const [, url = ''] = await server.waitForStdout(/^LISTENING (http:.+)$/m);
  const { pid } = server.child;
  return {
    url,
    server,
    descriptors: () => fs.readdirSync(`/proc/${pid}/fd`).length,
    residentBytes: () => {
      const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** What a pull asks for: the next root, the timestamp, an archive. */
async function honestPull({ url }: Site): Promise<void> {
  assert.equal((await getOnce(`${url}/metadata/2.root.json`)).status, 404);
  assert.equal((await getOnce(`${url}/metadata/timestamp.json`)).status, 200);
  assert.equal((await getOnce(`${url}/${bigFile}`)).bytes, bigBytes);
}

/** Over a connection of its own, that ends with the answer: what stays open is the server's. */
async function getOnce(
  url: string,
): Promise<{ readonly status: number | undefined; readonly bytes: number }> {
  const [answer] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of answer) bytes += (chunk as Buffer).length;
  return { status: answer.statusCode, bytes };
}

/** So long as who is refused at the first try would try again, on a slow machine too. */
async function untilPulled(site: Site): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await honestPull(site);
    } catch (error) {
      if (tries === 200) throw error;
      await setTimeout(500);
    }
  }
}

async function honestPulls(site: Site): Promise<void> {
  for (let round = 0; round < 5; round += 1) await honestPull(site);
}

type Attack = (site: Site) => Promise<Socket[]>;

const many = 2000;
/** Of a server with so many descriptors. */
const places = (1024 - 64) / 2;
const half = 'GET /metadata/timestamp.json HTTP/1.1\r\nHost:';

const attacks: Readonly<Record<string, Attack>> = {
  'asks for an archive fifty times in one write and resets the connection, again and again': async ({
    url,
  }) => {
    for (let round = 0; round < 40; round += 1) {
      await resetAfterFirstBytes(await hostileClient(url, getRequest(bigFile).repeat(50)));
    }
    return [];
  },
  'asks for an archive eight times in one write and resets the connection, again and again': async ({
    url,
  }) => {
    for (let round = 0; round < 150; round += 1) {
      await resetAfterFirstBytes(await hostileClient(url, getRequest(bigFile).repeat(8)));
    }
    return [];
  },
  'asks for five hundred archives, each with a word that it will wait, and reads nothing': async ({
    url,
  }) => {
    const text = `GET /${bigFile} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n\r\n`;
    return hostileClients(url, text.repeat(500), 20);
  },
  'reads nothing of what it asked for, on hundreds of connections': async ({ url }) => {
    const sockets = await hostileClients(url, getRequest(bigFile), 400);
    for (const socket of sockets) socket.pause();
    return sockets;
  },
  'never ends its headers': ({ url }) => hostileClients(url, half, 600),
  'opens thousands of connections and says nothing': ({ url }) => hostileClients(url, '', many),
  'asks again and again behind a request that is refused before anybody sees it': ({ url }) =>
    hostileClients(url, `GET / HTTP/1.1\r\n\r\n${getRequest(bigFile).repeat(30)}`, 50),
  'says what is no request behind one that is': ({ url }) =>
    hostileClients(url, `${getRequest(bigFile)}nonsense\r\n\r\n`, 200),
};

describe('a server with 1,024 descriptors', () => {
  let dir: TempDir;
  let site: Site;
  const start = { descriptors: 0 };

  before(async () => {
    dir = tempDir();
    site = await startSite(dir);
    const quiet = site.descriptors();
    await honestPulls(site);
    await until(() => site.descriptors() <= quiet + 1);
    start.descriptors = site.descriptors();
  });
  after(async () => {
    await site[Symbol.asyncDispose]();
    dir[Symbol.dispose]();
  });

  for (const [what, attack] of Object.entries(attacks)) {
    it(`is as it was behind a client that ${what}`, async () => {
      for (const socket of await attack(site)) socket.destroy();
      await until(() => site.descriptors() <= start.descriptors);
      await honestPulls(site);
      assert.ok(site.residentBytes() < 300_000_000, `${site.residentBytes()} bytes`);
    });
  }

  for (const [who, text] of [
    ['who waits behind its answer', getRequest('metadata/timestamp.json')],
    ['who says nothing', ''],
    ['who never ends its headers', half],
  ] as const) {
    it(`gets an honest pull through while all places are held from as many addresses by ${who}`, async () => {
      const held = await manyClients(site.url, text, places + 50);
      for (const socket of held) socket.resume();
      await honestPulls(site);
      // Their places were given away one by one, and not all at once.
      assert.ok(held.filter((socket) => !socket.destroyed).length > places / 2);
      for (const socket of held) socket.destroy();
      await until(() => site.descriptors() <= start.descriptors);
    });
  }

  it(
    'gets an honest pull through, after ten seconds, while all places are held by clients that read nothing',
    longCase,
    async () => {
      const held = await manyClients(site.url, getRequest(hugeFile), places);
      for (const socket of held) socket.pause();
      await until(() => openCount(site, dir.join(hugeFile)) > places / 2);
      await untilPulled(site);
      for (const socket of held) socket.destroy();
      await until(() => site.descriptors() <= start.descriptors);
    },
  );

  it('opens one file for one connection, however much is asked on it', async () => {
    const socket = await hostileClient(site.url, getRequest(hugeFile).repeat(8));
    socket.pause();
    await until(() => openCount(site, dir.join(hugeFile)) === 1);
    await honestPull(site);
    await until(() => openCount(site, dir.join(hugeFile)) === 1);
    socket.destroy();
    await until(() => openCount(site, dir.join(hugeFile)) === 0);
  });

  it('uses no more memory when all of it comes again', longCase, async () => {
    // What a busy machine has not collected yet comes once; what is never given back comes with each round.
    const sizes = [site.residentBytes()];
    for (let round = 0; round < 5; round += 1) {
      for (const attack of Object.values(attacks)) {
        const sockets = await attack(site);
        for (const socket of sockets) socket.destroy();
        await until(() => site.descriptors() <= start.descriptors);
      }
      sizes.push(site.residentBytes());
      if ((sizes.at(-1) ?? 0) < (sizes.at(-2) ?? 0) + 30_000_000) return;
    }
    assert.fail(`resident bytes, round by round: ${sizes.join(', ')}`);
  });

  it('ends with 0 and its result at SIGTERM, whatever clients did and do', async () => {
    const held = await Promise.all([
      hostileClients(site.url, half, 20),
      hostileClients(site.url, '', 20),
      hostileClients(site.url, getRequest('metadata/timestamp.json').repeat(5), 20),
    ]);
    for (let round = 0; round < 5; round += 1) {
      await resetAfterFirstBytes(await hostileClient(site.url, getRequest(bigFile).repeat(20)));
    }
    site.server.child.kill('SIGTERM');
    const { exitCode, stdout, stderr } = await site.server.ended;
    for (const socket of held.flat()) socket.destroy();
    assert.equal(exitCode, 0);
    assert.match(stdout, /^STOPPED /m);
    // Its log begins at warnings: nothing that a client did is one.
    assert.equal(stderr, '');
  });
});

function openCount({ server }: Site, path: string): number {
  const folder = `/proc/${server.child.pid}/fd`;
  const targetOf = (name: string): string => {
    try {
      return fs.readlinkSync(`${folder}/${name}`);
    } catch {
      // Closed since the directory was read.
      return '';
    }
  };
  return fs.readdirSync(folder).filter((name) => targetOf(name) === path).length;
}
