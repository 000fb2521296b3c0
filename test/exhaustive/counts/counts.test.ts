// The cost of a first sync, an update and a poll without news, in counts that are equal on all machines: requests, bytes,
// files, directories, flushes, modules. A count above its limit is an added cost. `npm run bench` measures times.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { agentPoll } from '../../../bench/at-rest.js';
import { changeTwoFiles, policySmall, writePolicyTree } from '../../../bench/policy-tree.js';
import { configure, createRepository, publish, type Repository } from '../../../bench/subjects/writ.js';
import { type Served, startWritServer, type WritServer } from '../../../bench/web/writ-server.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { tracingEnv } from '../../kit/sources/loaded-sources.js';
import { countingProxy } from './counting-proxy.js';
import { type CallCounts, tracedWrit } from './traced-calls.js';

interface Pulled {
  readonly calls: CallCounts;
  readonly served: Served;
}

describe('policy-small, 200 files', { ...needs('strace', 'strace'), ...needs('time', 'time') }, () => {
  let dir: TempDir;
  let repository: Repository;
  let server: WritServer;

  before(async () => {
    dir = tempDir();
    mkdirSync(dir.join('host'));
    writePolicyTree(dir.join('first'), policySmall);
    cpSync(dir.join('first'), dir.join('second'), { recursive: true });
    changeTwoFiles(dir.join('second'), policySmall);
    repository = await createRepository(dir.path);
    await publish(repository, dir.join('first'));
    server = await startWritServer(repository.repository);
  });

  after(async () => {
    await server[Symbol.asyncDispose]();
    dir[Symbol.dispose]();
  });

  async function pull(): Promise<Pulled> {
    const host = dir.join('host');
    const config = configure(repository, server, host);
    let calls: CallCounts | undefined;
    const served = await server.counted(async () => {
      calls = await tracedWrit(['pull', '--config', config], dir.join('trace'), `${host}/state`);
      return { wallMs: 0 };
    });
    assert.ok(calls);
    return { calls, served };
  }

  it('is first synced by 5 requests and one archive, each file made once, flushed together', async (t) => {
    const { calls, served } = await pull();
    t.diagnostic(JSON.stringify({ calls, served }));
    assert.equal(served.requests, 5);
    assert.ok(served.receivedBytes <= 210_000);
    assert.ok(calls.filesCreated >= 200 && calls.filesCreated <= 200 + 30);
    assert.ok(calls.directoriesRead <= 84);
    assert.ok(calls.flushes <= 50 && calls.renames <= 24);
  });

  it('costs two requests, 1,100 bytes and next to no file when nothing is new', async (t) => {
    const { calls, served } = await pull();
    t.diagnostic(JSON.stringify({ calls, served }));
    assert.equal(served.requests, 2);
    assert.ok(served.receivedBytes <= 1100);
    // Uses the digests of staging; only the time in the status is written.
    assert.deepEqual([calls.filesCreated <= 1, calls.flushes, calls.renames <= 1], [true, 0, true]);
    assert.ok(calls.directoriesRead <= 70);
    const { calls: next } = await pull();
    t.diagnostic(JSON.stringify({ next }));
    assert.ok(next.filesCreated <= 1 && next.directoriesRead <= 160);
    // Without an agent only status.json has the time of the last success.
    assert.deepEqual([next.flushes, next.renames <= 1], [0, true]);
  });

  it('is updated by 5 requests at most', async (t) => {
    await publish(repository, dir.join('second'));
    const { calls, served } = await pull();
    t.diagnostic(JSON.stringify({ calls, served }));
    assert.ok(served.requests <= 5);
    assert.ok(served.receivedBytes <= 210_000);
    assert.ok(calls.filesCreated <= 200 + 30 && calls.directoriesRead <= 190);
    assert.ok(calls.flushes <= 45 && calls.renames <= 20);
  });

  it('is asked for its status by few modules', async (t) => {
    const count = await modulesOf(['status', '--config', dir.join('host/agent.yaml')]);
    t.diagnostic(`${count}`);
    assert.ok(count <= 300);
  });

  it('costs an agent two requests and half a kilobyte for each poll on the connection that it keeps', async () => {
    const figures = await agentPoll(repository, dir.join('polled'), 3);
    const figure = (name: string): number => figures.find((one) => one.name === name)?.value ?? Number.NaN;
    // A poll may have begun before the first count, or not have ended at the last.
    assert.ok(Math.abs(figure('the same, requests') - 2) <= 1);
    assert.ok(figure('the same, received with headers') <= 1000);
  });

  it('costs an agent the next root and the timestamp for each poll, and one connection for all of them', async () => {
    await using proxy = await countingProxy(server.url);
    const config = configure(repository, proxy, dir.join('kept'), { pollEvery: '1s' });
    await using agent = startWrit(['agent', '--config', config]);
    const polled = (times: number): Promise<unknown> =>
      agent.waitForStderr(new RegExp(`(?:"cycle ended"[^]*){${times}}`));
    await polled(2);
    const before = proxy.requests().length;
    assert.equal(proxy.connections(), 1);
    await polled(5);
    const poll = ['/metadata/2.root.json', '/metadata/timestamp.json'];
    assert.deepEqual(proxy.requests().slice(before), [...poll, ...poll, ...poll]);
    assert.equal(proxy.connections(), 1);
  });
});

describe('writ --version', () => {
  it('imports 20 modules at most', async () => {
    assert.ok((await modulesOf(['--version'])) <= 20);
  });
});

/** @returns the number of imported modules, with those of Node */
async function modulesOf(args: readonly string[]): Promise<number> {
  using dir = tempDir();
  await runWritProcess(args, { env: tracingEnv(dir.join('imports')) });
  return new Set(readFileSync(dir.join('imports'), 'utf8').trim().split('\n')).size;
}
