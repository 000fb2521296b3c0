// What a short command loads, in files: each takes about half a millisecond of processor time, and a package that
// nobody needs takes fifty. Counts hold it, since a clock on a busy machine holds nothing.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';

const hook = new URL('../../kit/sources/trace-imports.js', import.meta.url).href;

/** @returns the files that it loads by import, as `src/cli/main.js`, `packages/yaml.js` or the name of a package */
async function loadedBy(host: InstalledHost, ...args: readonly string[]): Promise<readonly string[]> {
  const trace = host.dir.join('imports');
  fs.rmSync(trace, { force: true });
  const env = { NODE_OPTIONS: `--import=${hook}`, WRIT_TRACE_IMPORTS: trace };
  const run = await runWritProcess(args, { env });
  assert.equal(run.exitCode, 0, run.stderr);
  const urls = fs.readFileSync(trace, 'utf8').split('\n');
  const files = urls.filter((url) => url.startsWith('file:') && !url.includes('/kit/sources/'));
  return [...new Set(files)].map(
    (url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? url.replace(/^.*\/dist\//, ''),
  );
}

const joined = (files: readonly string[]): string[] => files.filter((file) => file.startsWith('packages/'));
/** Neither ours nor joined: each is many files. */
const whole = (files: readonly string[]): string[] =>
  files.filter((file) => !/^(?:src|packages)\//.test(file)).sort();

describe('what is loaded', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('by writ --version is no parser, no command and no package', async () => {
    const files = await loadedBy(installed, '--version');
    assert.deepEqual([joined(files), whole(files)], [[], []]);
    assert.deepEqual(
      files.filter((file) => /console\/program|commands\//.test(file)),
      [],
    );
    assert.ok(files.length <= 12, `${files.length} files`);
  });

  it('by writ status is nothing that speaks to a server, repairs, signs, logs or compiles a schema', async () => {
    using host = copyHost(installed);
    const files = await loadedBy(host, 'status', '--config', host.config);
    assert.deepEqual(joined(files).sort(), [
      'packages/commander.js',
      'packages/node-cron.js',
      'packages/picomatch.js',
      'packages/yaml.js',
    ]);
    assert.deepEqual(whole(files), []);
    const parts = /agent\/(?:integrity\/(?!standing-damage)|activation|staging|daemon)|publisher|http-client/;
    assert.deepEqual(
      files.filter((file) => parts.test(file)),
      [],
    );
    assert.ok(files.length <= 215, `${files.length} files`);
  });

  it('by a pull with nothing new is no package but the joined ones, and of them none that it has no need of', async () => {
    using host = copyHost(installed);
    const args = ['pull', '--config', host.config];
    assert.equal((await runWritProcess(args)).exitCode, 0);
    const files = await loadedBy(host, ...args);
    assert.ok(!joined(files).includes('packages/undici.js'), 'of a directory nobody asks a server');
    assert.deepEqual(whole(files), []);
    assert.ok(files.length <= 330, `${files.length} files`);
  });

  it('by a configuration with a mistake is ajv too, which names every one of them', async () => {
    using host = copyHost(installed);
    host.configure({ scrub: { every: 'never' }, pol: {} });
    const run = await runWritProcess(['config', 'check', host.config]);
    assert.equal(run.exitCode, 2);
    for (const key of ['every', 'pol']) assert.match(run.stderr, new RegExp(`\\b${key}\\b`));
  });
});
