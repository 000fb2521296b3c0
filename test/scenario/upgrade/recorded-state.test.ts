// Starts from what a released version left on the disk (test/recorded), as an upgrade does: whatever this version changes of a
// format, it reads those of before. Holds that what keeps older releases out, and what people said, came along.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { jsonOf, runWrit, type WritRun } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const recorded = join(projectRoot, 'test', 'recorded');
const maxTarballBytes = 100_000;

for (const tarball of fs.readdirSync(recorded).filter((name) => name.endsWith('.tar.gz')))
  describe(`state that ${tarball.replace('.tar.gz', '')} left`, () => {
    it('is read by status and history, with the hold that a rollback left', async () => {
      using dir = tempDir();
      const site = recordedSite(dir, tarball);
      const status = await site.json('status');
      assert.equal(status['generation'], 1);
      assert.deepEqual(holdsOf(status), ['dns-edge 2']);
      assert.equal((await site.host('verify')).exitCode, 0);
      assert.equal((await site.host('history')).exitCode, 0);
    });

    it('keeps the held release out, and takes the next one under a number that was never used', async () => {
      using dir = tempDir();
      const site = recordedSite(dir, tarball);
      await site.host('pull');
      assert.equal((await site.json('status'))['generation'], 1, 'held still');
      assert.equal((await site.publish('version 3\n')).exitCode, 0);
      assert.equal((await site.host('pull')).exitCode, 0);
      const status = await site.json('status');
      assert.deepEqual([status['generation'], holdsOf(status)], [3, []]);
      assert.equal(
        fs.readFileSync(dir.join('state/policy/current/dns-edge/block.rpz'), 'utf8'),
        'version 3\n',
      );
    });

    it('takes no older metadata: what the host had seen of its versions came along', async () => {
      using dir = tempDir();
      const site = recordedSite(dir, tarball);
      fs.copyFileSync(dir.join('older-timestamp.json'), dir.join('repository/metadata/timestamp.json'));
      assert.match(JSON.stringify(await site.json('pull')), /"METADATA_ROLLBACK"/);
      assert.equal((await site.json('status'))['generation'], 1);
    });

    it('is a fleet that knows its host, which goes on reporting under the key that it enrolled with', async () => {
      using dir = tempDir();
      const site = recordedSite(dir, tarball);
      const store = ['--store', dir.join('fleet')];
      const hosts = async () => jsonOf(await runWrit(['fleet', 'hosts', ...store, '--json']))['hosts'];
      const [before] = (await hosts()) as readonly FleetHost[];
      assert.deepEqual([before?.host, serialsOf(before)], ['recorded', [1]]);
      await using server = startWrit(['fleet', 'serve', ...store, '--listen', '127.0.0.1:0']);
      const [, url = ''] = await server.waitForStdout(/LISTENING (\S+)/);
      site.configure({ host: { id: 'recorded' }, fleet: { url, tokenFile: dir.join('absent') } });
      assert.equal((await site.publish('version 3\n')).exitCode, 0);
      assert.equal((await site.host('pull')).exitCode, 0);
      const all = (await hosts()) as readonly FleetHost[];
      assert.deepEqual(
        all.map((one) => [one.key, serialsOf(one)]),
        [[before?.key, [3]]],
      );
    });

    it('is a repository that checks, and goes on from its serial', async () => {
      using dir = tempDir();
      const site = recordedSite(dir, tarball);
      const where = ['--repository', dir.join('repository')];
      assert.equal((await runWrit(['repo', 'check', ...where])).exitCode, 0);
      assert.match((await site.publish('version 3\n')).stdout, /serial 2 -> 3/);
    });

    it('is small enough to be kept for each version', () => {
      assert.ok(fs.statSync(join(recorded, tarball)).size < maxTarballBytes);
    });
  });

/** The recorded host beside its repository, in another place than where it was recorded. */
function recordedSite(dir: TempDir, tarball: string) {
  execFileSync('tar', ['-xpzf', join(recorded, tarball), '--no-same-owner', '-C', dir.path]);
  const [config, repository, source] = [dir.join('agent.yaml'), dir.join('repository'), dir.join('source')];
  const places = { state: dir.join('state'), run: dir.join('run'), root: dir.join('keys', 'root.json') };
  const bundles = [{ name: 'dns-edge' }];
  const settings = { repository: pathToFileURL(repository).href, sandbox: 'off', bundles };
  const configure = (more: object): void =>
    fs.writeFileSync(config, JSON.stringify({ ...settings, ...places, ...more }));
  configure({});
  const host = (...args: string[]): Promise<WritRun> => runWrit([...args, '--config', config]);
  return {
    host,
    configure,
    json: async (...args: string[]) => jsonOf(await host(...args, '--json')),
    publish: (text: string): Promise<WritRun> => {
      fs.mkdirSync(source, { recursive: true });
      fs.writeFileSync(join(source, 'block.rpz'), text);
      const where = ['--repository', repository, '--keys', dir.join('keys'), '--bundle', 'dns-edge'];
      return runWrit(['publish', source, ...where]);
    },
  };
}

interface FleetHost {
  readonly key: string;
  readonly host: string;
  readonly bundles: readonly { readonly active?: { readonly serial: number } }[];
}

const serialsOf = (host: FleetHost | undefined) => host?.bundles.map(({ active }) => active?.serial);

function holdsOf(status: Readonly<Record<string, unknown>>): readonly string[] {
  const holds = status['holds'] as readonly { readonly bundle: string; readonly serial: number }[];
  return holds.map(({ bundle, serial }) => `${bundle} ${serial}`);
}
