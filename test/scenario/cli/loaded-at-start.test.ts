// What a short command loads, in files: each takes about half a millisecond of processor time, and a package that
// nobody needs takes fifty. Counts hold it, since a clock on a busy machine holds nothing.
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

describe('what is loaded', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('by writ --version is no parser, no command and no package', async () => {
    const { files, sources, joined, whole } = await loadedBy(installed, '--version');
    assert.deepEqual([joined, whole], [[], []]);
    assert.deepEqual(
      sources.filter((path) => /console\/program|commands\//.test(path)),
      [],
    );
    assert.ok(files <= 14, `${files} files`);
  });

  it('by writ status is nothing that speaks to a server, repairs, signs, logs or compiles a schema', async () => {
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

  it('by a pull with nothing new is no package but the joined ones, and of them none that it has no need of', async () => {
    using host = copyHost(installed);
    const args = ['pull', '--config', host.config];
    assert.equal((await runWritProcess(args)).exitCode, 0);
    const { files, sources, joined, whole } = await loadedBy(host, ...args);
    assert.ok(!joined.includes('undici'), 'of a directory nobody asks a server');
    assert.deepEqual(whole, []);
    assert.ok(sources.length <= 500, `${sources.length} sources`);
    assert.ok(files <= 105, `${files} files`);
  });

  it('by a question to a fleet server is neither a store nor a server, and by no other command any of it', async () => {
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

  it('by a configuration with a mistake is ajv too, which names every one of them', async () => {
    using host = copyHost(installed);
    host.configure({ scrub: { every: 'never' }, pol: {} });
    const run = await runWritProcess(['config', 'check', host.config]);
    assert.equal(run.exitCode, 2);
    for (const key of ['every', 'pol']) assert.match(run.stderr, new RegExp(`\\b${key}\\b`));
  });
});
