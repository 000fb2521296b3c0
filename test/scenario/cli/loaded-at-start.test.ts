// The files that a short command loads. Each file takes about half a millisecond of processor time, and an unneeded
// package fifty. The tests count files, because a measured time is not stable on a busy machine.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { type Loaded, loadedSources, tracingEnv } from '../../kit/sources/loaded-sources.js';

async function loadedBy(host: InstalledHost, ...args: readonly string[]): Promise<Loaded> {
  const trace = host.dir.join('imports');
  fs.rmSync(trace, { force: true });
  const run = await runWritProcess(args, { env: tracingEnv(trace) });
  assert.equal(run.exitCode, 0, run.stderr);
  return loadedSources(trace);
}

describe('the modules that a command loads', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('contain no parser, command or package for writ --version', async () => {
    const { files, sources, joined, whole } = await loadedBy(installed, '--version');
    assert.deepEqual([joined, whole], [[], []]);
    assert.deepEqual(
      sources.filter((path) => /console\/program|commands\//.test(path)),
      [],
    );
    assert.ok(files <= 14, `${files} files`);
  });

  it('contain no code that connects to a server, repairs, signs, logs or compiles a schema for writ status', async () => {
    using host = copyHost(installed);
    const { files, sources, joined, whole } = await loadedBy(host, 'status', '--config', host.config);
    assert.deepEqual(joined, ['commander', 'node-cron', 'picomatch', 'yaml']);
    assert.deepEqual(whole, []);
    const parts = /agent\/(?:integrity\/(?!current-damage)|activation|staging|daemon)|publisher|http-client/;
    assert.deepEqual(
      sources.filter((path) => parts.test(path)),
      [],
    );
    assert.ok(sources.length <= 260, `${sources.length} sources`);
    assert.ok(files <= 79, `${files} files`);
  });

  it('contain only the joined packages that it needs for a pull with nothing new', async () => {
    using host = copyHost(installed);
    const args = ['pull', '--config', host.config];
    assert.equal((await runWritProcess(args)).exitCode, 0);
    const { files, sources, joined, whole } = await loadedBy(host, ...args);
    assert.ok(!joined.includes('undici'), 'a repository in a directory needs no HTTP client');
    assert.deepEqual(whole, []);
    assert.ok(sources.length <= 500, `${sources.length} sources`);
    assert.ok(files <= 105, `${files} files`);
  });

  it('contain neither store nor server for a query to a fleet server', async () => {
    const trace = installed.dir.join('imports-fleet');
    const args = ['fleet', 'log', '--url', 'http://127.0.0.1:9', '--token-file', installed.dir.join('none')];
    await runWritProcess(args, { env: tracingEnv(trace) });
    const { sources, whole } = await loadedSources(trace);
    assert.deepEqual(whole, []);
    assert.deepEqual(
      sources.filter((path) => /^src\/(?:fleet|server|publisher)\//.test(path)),
      [],
    );
  });

  it('contain ajv for a configuration with mistakes, which names every one of them', async () => {
    using host = copyHost(installed);
    host.configure({ scrub: { every: 'never' }, pol: {} });
    const run = await runWritProcess(['config', 'check', host.config]);
    assert.equal(run.exitCode, 2);
    for (const key of ['every', 'pol']) assert.match(run.stderr, new RegExp(`\\b${key}\\b`));
  });
});
