import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type RunningServer, type ServerOptions, startServer } from '../../../src/server/server.js';
import { logLines } from '../../kit/assert/log-lines.js';
import { until } from '../../kit/assert/until.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { getRequest, hostileClient, resetAfterFirstBytes } from '../../kit/net/hostile-client.js';
import { rawRequest } from '../../kit/net/raw-request.js';
import {
  archiveFile,
  fixtureExpires,
  replaceFile,
  roleBytes,
  writeRepository,
} from '../../kit/repository/unsigned-repository.js';

async function withServer(
  options: Partial<ServerOptions>,
  act: (server: RunningServer, repository: string) => Promise<void>,
): Promise<void> {
  using dir = tempDir();
  writeRepository(dir.path);
  const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, ...options });
  try {
    await act(server, dir.path);
  } finally {
    await server.close();
  }
}

interface HealthBody {
  readonly status: string;
  readonly reasons: readonly { readonly code: string }[];
  readonly roles: Readonly<Record<string, { readonly version: number }>>;
}

async function health(server: RunningServer): Promise<{ status: number; body: HealthBody }> {
  const response = await fetch(`${server.url}/healthz`);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  return { status: response.status, body: (await response.json()) as HealthBody };
}

describe('a client that disconnects during its response', () => {
  it('is one line of the log without an error, and counted', async () => {
    const log = logLines();
    await withServer({ log: log.log }, async (server, repository) => {
      const file = `targets/${'c'.repeat(64)}.big`;
      fs.writeFileSync(`${repository}/${file}`, Buffer.alloc(30_000_000, 0x61));
      for (let round = 0; round < 3; round += 1) {
        await resetAfterFirstBytes(await hostileClient(server.url, getRequest(file)));
        (await hostileClient(server.url, getRequest(file))).resetAndDestroy();
      }
      await until(() => log.named('request').length >= 3);
      assert.ok(log.named('request').every(({ complete }) => complete === false));
      assert.deepEqual(
        log.lines.filter(({ level }) => Number(level) > 30),
        [],
      );
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      assert.match(metrics, /^writ_server_aborted_requests_total\{route="target"\} [3-6]$/m);
    });
  });
});

describe('/healthz', () => {
  it('is 200 while hosts accept the repository, and 503 with the reason when they do not', async () => {
    const clock = fakeClock();
    await withServer({ clock }, async (server, repository) => {
      const fine = await health(server);
      assert.deepEqual([fine.status, fine.body.status], [200, 'ok']);
      assert.equal(fine.body.roles['timestamp']?.version, 1);
      clock.setWallTime(Date.parse(fixtureExpires));
      const late = await health(server);
      assert.deepEqual([late.status, late.body.status], [503, 'critical']);
      assert.ok(late.body.reasons.every(({ code }) => code === 'METADATA_EXPIRED'));
      clock.setWallTime(Date.UTC(2026, 10, 1));
      fs.rmSync(`${repository}/metadata/1.snapshot.json`);
      const broken = await health(server);
      assert.equal(broken.status, 503);
      assert.ok(broken.body.reasons.some(({ code }) => code === 'METADATA_MISSING'));
    });
  });

  it('shows a publish that waits for the online keys', async () => {
    await withServer({ clock: fakeClock() }, async (server, repository) => {
      replaceFile(repository, 'metadata/2.targets.json', roleBytes('targets', { version: 2 }));
      const { status, body } = await health(server);
      assert.equal(status, 200);
      assert.deepEqual(
        body.reasons.map(({ code }) => code),
        ['PUBLISH_PENDING'],
      );
    });
  });
});

describe('a server with online keys', () => {
  it('signs a waiting publish into the snapshot at the request of a host, and continues when it cannot', async () => {
    const calls: (readonly string[])[] = [];
    const log = logLines();
    const signer = {
      obstacle: () => undefined,
      resign: (roles: readonly string[]) => {
        calls.push(roles);
        return Promise.reject(new Error('the key is away'));
      },
    };
    const options = { clock: fakeClock(), signer, log: log.log };
    await withServer(options, async (server, repository) => {
      await fetch(`${server.url}/metadata/timestamp.json`);
      assert.deepEqual(calls, []);
      replaceFile(repository, 'metadata/2.targets.json', roleBytes('targets', { version: 2 }));
      assert.equal((await fetch(`${server.url}/metadata/timestamp.json`)).status, 200);
      for (let turn = 0; turn < 50 && calls.length === 0; turn += 1) await setImmediate();
      assert.deepEqual(calls, [['snapshot', 'timestamp']]);
      const { status, body } = await health(server);
      assert.deepEqual([status, body.status], [200, 'warning']);
      const text = await (await fetch(`${server.url}/metrics`)).text();
      assert.match(text, /^writ_server_resign_total\{result="failure"\} 1$/m);
      assert.equal(log.named('cannot re-sign').length, 1);
    });
  });
});

describe('/metrics', () => {
  it('counts answers by route and status, and shows the repository', async () => {
    await withServer({ clock: fakeClock() }, async (server) => {
      const first = await fetch(`${server.url}/metadata/timestamp.json`);
      const etag = first.headers.get('etag') ?? '';
      for (let poll = 0; poll < 3; poll += 1) {
        await (await fetch(`${server.url}/metadata/2.root.json`)).text();
        await fetch(`${server.url}/metadata/timestamp.json`, { headers: { 'if-none-match': etag } });
      }
      await (await fetch(`${server.url}/${archiveFile}`)).text();
      await (await fetch(`${server.url}/whatever/else`)).text();
      const response = await fetch(`${server.url}/metrics`);
      const lines = (await response.text()).split('\n');
      assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
      for (const line of [
        'writ_server_requests_total{route="timestamp",status="200"} 1',
        'writ_server_requests_total{route="timestamp",status="304"} 3',
        'writ_server_requests_total{route="root",status="404"} 3',
        'writ_server_requests_total{route="target",status="200"} 1',
        'writ_server_requests_total{route="none",status="404"} 1',
        'writ_server_resign_total{result="success"} 0',
        'writ_repository_version{role="timestamp"} 1',
        `writ_repository_expiry_seconds{role="root"} ${(Date.parse(fixtureExpires) - Date.UTC(2026, 10, 1)) / 1000}`,
        'writ_repository_pending_files 0',
      ]) {
        assert.ok(lines.includes(line), line);
      }
      assert.ok(lines.some((line) => line.startsWith('writ_server_sent_bytes_total{route="target"} ')));
    });
  });
});

describe('access log', () => {
  it('is one line a request, with nothing of its headers', async () => {
    const log = logLines();
    await withServer({ log: log.log }, async (server) => {
      const headers = { authorization: 'Bearer secret', cookie: 'secret=1' };
      await (await fetch(`${server.url}/${archiveFile}`, { headers })).text();
      await fetch(`${server.url}/metadata/timestamp.json`, { method: 'POST', headers });
      await fetch(`${server.url}/%2e%2e/${'x'.repeat(2000)}`);
      await rawRequest(server.url, 'nonsense\r\n\r\n');
    });
    const lines = log.named('request');
    assert.deepEqual(
      lines.map(({ method, status, route }) => [method, status, route]),
      [
        ['GET', 200, 'target'],
        ['POST', 405, 'timestamp'],
        ['GET', 404, 'none'],
      ],
    );
    const [first] = lines;
    assert.equal(first?.['path'], `/${archiveFile}`);
    assert.equal(first?.['remote'], '127.0.0.1');
    assert.equal(first?.['complete'], true);
    assert.ok(Number(first?.['bytes']) > 16 && Number(first?.['bytes']) < 1000);
    assert.equal(typeof first?.['durationMs'], 'number');
    assert.ok(String(lines[2]?.['path']).length <= 256);
    assert.equal(log.named('not a request').length, 1);
    assert.doesNotMatch(JSON.stringify(log.lines), /secret/);
    assert.deepEqual(
      ['listening', 'closing', 'closed'].map((message) => log.named(message).length),
      [1, 1, 1],
    );
  });

  it('records when a client disconnected before the end', async () => {
    const log = logLines();
    await withServer({ log: log.log }, async (server, repository) => {
      const file = `targets/${'c'.repeat(64)}.big`;
      fs.writeFileSync(`${repository}/${file}`, Buffer.alloc(30_000_000));
      const controller = new AbortController();
      const response = await fetch(`${server.url}/${file}`, { signal: controller.signal });
      await response.body?.getReader().read();
      controller.abort();
    });
    const [line] = log.named('request');
    assert.equal(line?.['complete'], false);
    assert.ok(Number(line?.['bytes']) < 30_000_000);
  });

  it('records why a request failed, and sends the client no detail', async () => {
    const log = logLines();
    await withServer({ log: log.log }, async (server, repository) => {
      replaceFile(repository, 'metadata/timestamp.json', Buffer.alloc(20_000));
      const response = await fetch(`${server.url}/metadata/timestamp.json`);
      assert.equal(response.status, 500);
      assert.doesNotMatch(await response.text(), /timestamp|\//);
    });
    const [line] = log.named('a request failed');
    assert.match(JSON.stringify(line?.['err']), /"code":"METADATA_MALFORMED"/);
  });
});
