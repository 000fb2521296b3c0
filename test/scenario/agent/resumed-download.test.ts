// An interrupted download and the run that resumes it, with a real server and processes of their own.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startServer } from '../../../src/server/server.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { noise } from '../../kit/delta/difference-bench.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type CuttingFront, cuttingFront } from '../../kit/net/cutting-front.js';

const policyBytes = 3_000_000;
const zone = (seed: string) => ({ 'block.rpz': noise(seed, policyBytes) });

interface Scene extends WritSite, AsyncDisposable {
  readonly front: CuttingFront;
  readonly partials: string;
  /** In bytes, of the archive. */
  readonly length: number;
  active(): string | undefined;
}

/** A release of some megabytes behind a server that ends the first transfer of it after 60 %. */
async function scene(dir: TempDir, by: 'a cut' | 'silence'): Promise<Scene> {
  const site = writSite(dir, { sandbox: 'off' });
  await site.repository.publish(zone('one'));
  const server = await startServer({ repository: site.repository.directory, host: '127.0.0.1', port: 0 });
  const front = await cuttingFront(server.url);
  const config = JSON.parse(fs.readFileSync(site.config, 'utf8')) as Record<string, unknown>;
  fs.writeFileSync(site.config, JSON.stringify({ ...config, repository: front.url }));
  const targets = join(site.repository.directory, 'targets/dns-edge');
  const [name = ''] = fs.readdirSync(targets);
  const { size: length } = fs.statSync(join(targets, name));
  front.endNext({ bytes: Math.floor(length * 0.6), by });
  const path = join(site.state, 'policy/current/dns-edge/block.rpz');
  return {
    ...site,
    ...{ front, length, partials: join(site.state, 'partials') },
    active: () => (fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined),
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]();
      await server.close();
    },
  };
}

/** Only the rest was downloaded, with the version in If-Range that the server had sent. */
function assertRest({ front, length, partials, active }: Scene): void {
  const [first, second, ...more] = front.files;
  assert.ok(first && second && more.length === 0, JSON.stringify(front.files));
  const offset = Number(/^bytes=(\d+)-$/.exec(second.range ?? '')?.[1]);
  assert.deepEqual([second.status, second.sentBytes], [206, length - offset]);
  assert.match(second.ifRange ?? '', /^"[^"]+"$/);
  // The server had sent more bytes than the host wrote before the interruption.
  assert.ok(offset > 0.5 * length && offset <= 0.6 * length, `it continues from byte ${offset} of ${length}`);
  assert.ok(second.sentBytes < 0.5 * length);
  assert.equal(active(), zone('one')['block.rpz']);
  assert.deepEqual(fs.readdirSync(partials), []);
}

/** The text of the fetch step of the last cycle in the history. */
async function lastFetch(host: Scene): Promise<string> {
  const { entries } = (await host.json('history')) as { entries: { result: { cycle: string } }[] };
  const { cycle = '' } = entries.at(0)?.result ?? {};
  const history = await host.writ('history', '--cycle', cycle);
  return /fetch +(?:ok +)?(.*\S) +[\d.]+ m?s/.exec(history.stdout)?.[1] ?? history.stdout + history.stderr;
}

const written = async ({ partials, length }: Scene): Promise<void> => {
  await until(() => {
    const [name] = fs.existsSync(partials) ? fs.readdirSync(partials) : [];
    return name !== undefined && fs.statSync(join(partials, name)).size > 0.55 * length;
  });
};

describe('a download that is interrupted after 60 %', () => {
  it('by a cut continues in the same pull', longCase, async () => {
    using dir = tempDir();
    await using host = await scene(dir, 'a cut');
    assert.equal((await host.writ('pull')).exitCode, 0);
    assertRest(host);
  });

  for (const signal of ['SIGKILL', 'SIGINT', 'SIGTERM'] as const) {
    it(`by ${signal} to a pull continues in the next pull, which reports its first byte`, async () => {
      using dir = tempDir();
      await using host = await scene(dir, 'silence');
      await using pull = host.start('pull');
      await written(host);
      pull.child.kill(signal);
      const { exitCode, stdout, stderr } = await pull.ended;
      assert.equal(exitCode, { SIGKILL: null, SIGINT: 130, SIGTERM: 143 }[signal]);
      if (signal !== 'SIGKILL')
        assert.match(stdout + stderr, /1\.\d MB of 2\.\d MB kept; the next pull continues/);
      assert.deepEqual(fs.readdirSync(host.partials).length, 2, 'the bytes, and which version they are of');
      const next = await host.writ('pull');
      assert.equal(next.exitCode, 0, next.stdout + next.stderr);
      assert.match(
        await lastFetch(host),
        /^(?:9\d\d\.\d kB|1\.0 MB) \(dns-edge continues from byte 1\d{6}\)$/,
      );
      assertRest(host);
    });
  }

  it('by a kill of the agent continues in the next agent', async () => {
    using dir = tempDir();
    await using host = await scene(dir, 'silence');
    await using agent = host.start('agent');
    await written(host);
    const { stdout } = await host.writ('status');
    assert.match(stdout, /^EMPTY {2}no policy is active, downloading \([\d.]+ [kM]B of 2\.\d MB\)/);
    assert.match(stdout, /freshness fresh: server reached \d+ s ago\n/);
    const status = await host.json('status');
    const { doneBytes, totalBytes } = status['downloading'] as { doneBytes: number; totalBytes: number };
    assert.deepEqual([totalBytes, doneBytes <= 0.6 * host.length], [host.length, true]);
    agent.child.kill('SIGKILL');
    await agent.ended;
    await using _again = await host.agent();
    await until(() => host.active() !== undefined);
    assertRest(host);
    await until(async () => (await host.json('status'))['last'] !== undefined);
    assert.equal((await host.json('status'))['downloading'], undefined);
  });

  it(
    'is not requested again when its pull ends after the last byte, while a check runs',
    longCase,
    async () => {
      for (const signal of ['SIGKILL', 'SIGINT'] as const) {
        using dir = tempDir();
        await using host = await scene(dir, 'a cut');
        const text = fs.readFileSync(host.config, 'utf8');
        const started = dir.join('started');
        const check = { name: 'slow', run: ['sh', '-c', `echo > ${started}; exec sleep 100`] };
        const bundles = [{ name: 'dns-edge', checks: [check] }];
        fs.writeFileSync(host.config, JSON.stringify({ ...(JSON.parse(text) as object), bundles }));
        await using pull = host.start('pull');
        await until(() => fs.existsSync(started));
        pull.child.kill(signal);
        await pull.ended;
        const asked = host.front.files.length;
        fs.writeFileSync(host.config, text);
        assert.equal((await host.writ('pull')).exitCode, 0);
        assert.equal(host.front.files.length, asked, signal);
        assert.equal(host.active(), zone('one')['block.rpz']);
        assert.deepEqual(fs.readdirSync(host.partials), []);
      }
    },
  );

  it(
    'by cuts continues at the next mirror without If-Range, because mirrors name versions differently',
    longCase,
    async () => {
      using dir = tempDir();
      await using host = await scene(dir, 'a cut');
      await using second = await cuttingFront(host.front.origin);
      // Each of the three attempts there transfers a few bytes.
      for (const bytes of [1000, 1000, 1000]) host.front.endNext({ bytes, by: 'a cut' });
      const config = JSON.parse(fs.readFileSync(host.config, 'utf8')) as Record<string, unknown>;
      const repository = [host.front.url, second.url];
      fs.writeFileSync(host.config, JSON.stringify({ ...config, repository }));
      const result = await host.json('pull');
      assert.equal(result['outcome'], 'activated', JSON.stringify(result));
      const [rest, ...more] = second.files;
      assert.deepEqual([rest?.status, rest?.ifRange, more], [206, undefined, []]);
      assert.ok((rest?.sentBytes ?? host.length) < 0.5 * host.length);
    },
  );

  it(
    'of a replaced release does not delay the new one, and its partial download is deleted',
    longCase,
    async () => {
      using dir = tempDir();
      await using host = await scene(dir, 'silence');
      await using pull = host.start('pull');
      await written(host);
      pull.child.kill('SIGKILL');
      await pull.ended;
      await host.repository.publish(zone('two'));
      assert.equal((await host.writ('pull')).exitCode, 0);
      assert.equal(host.active(), zone('two')['block.rpz']);
      assert.deepEqual(fs.readdirSync(host.partials), []);
      assert.equal((await host.writ('pull', '--force')).exitCode, 0);
      assert.deepEqual(fs.readdirSync(host.partials), [], 'also a download without a change');
    },
  );
});
