// The versions of metadata that a boot has accepted, beside a state directory that becomes older or empty: a repository of an older
// time is refused as before. A reboot, a trust store that a person moved away and a damaged copy end that.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { writeTree } from '../../kit/disk/write-tree.js';

const copied = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;

interface OlderScene {
  readonly host: InstalledHost;
  readonly floors: string;
  /** Puts the state directory of the time of release 1 in its place. */
  restoreOlderState(): void;
  /** @returns the exit code, the code of the first problem, and the active version of the policy */
  pull(): Promise<readonly [exitCode: number | null, code: string | undefined, policy: string | undefined]>;
}

const placesOf = (host: InstalledHost): string[] => ['--repository', host.repository, '--keys', host.keys];

async function publish(host: InstalledHost, version: number): Promise<void> {
  const source = writeTree(host.dir.join(`source-${version}`), { 'block.rpz': `version ${version}\n` });
  const run = await runWrit(['publish', source, ...placesOf(host), '--bundle', 'dns-edge']);
  assert.equal(run.exitCode, 0, run.stderr);
}

function policyOf({ paths }: InstalledHost): string | undefined {
  const path = `${paths.current}/dns-edge/block.rpz`;
  return fs.existsSync(path) ? fs.readFileSync(path, 'utf8').trim() : undefined;
}

/** A host that had release 3 in this boot, with a server that has release 2 as its newest again. */
async function withOlderServer(act: (scene: OlderScene) => Promise<void>): Promise<void> {
  using installed = await installHost();
  using host = copyHost(installed);
  const [olderState, olderServer] = [host.dir.join('older-state'), host.dir.join('older-repository')];
  fs.cpSync(host.paths.state, olderState, copied);
  fs.cpSync(host.repository, olderServer, copied);
  await publish(host, 3);
  assert.equal((await host.writ('pull')).exitCode, 0);
  assert.equal(policyOf(host), 'version 3');
  fs.rmSync(host.repository, { recursive: true });
  fs.renameSync(olderServer, host.repository);
  await act({
    host,
    floors: host.dir.join('run', 'trust-floors.json'),
    restoreOlderState: () => {
      fs.rmSync(host.paths.state, { recursive: true });
      fs.cpSync(olderState, host.paths.state, copied);
    },
    pull: async () => {
      const run = await host.writ('pull', '--json');
      const { problems = [] } = JSON.parse(run.stdout) as { problems?: { code: string }[] };
      return [run.exitCode, problems[0]?.code, policyOf(host)];
    },
  });
}

describe('the trust floors of a boot', () => {
  it('refuse an older repository after a restore of an older state', longCase, () =>
    withOlderServer(async ({ restoreOlderState, pull, host }) => {
      restoreOlderState();
      assert.deepEqual(await pull(), [1, 'METADATA_ROLLBACK', 'version 1']);
      await publishUntilNewer(host);
      assert.deepEqual((await pull())[0], 0);
    }),
  );

  it('refuse an older repository in a directory that was accepted as new', () =>
    withOlderServer(async ({ host, pull }) => {
      for (const name of fs.readdirSync(host.paths.state))
        fs.rmSync(`${host.paths.state}/${name}`, { recursive: true });
      assert.equal((await host.writ('resume', '--new-state')).exitCode, 0);
      assert.deepEqual(await pull(), [1, 'METADATA_ROLLBACK', undefined]);
    }));

  it('are removed with a trust store that a person moves away, as the hints name', longCase, () =>
    withOlderServer(async ({ host, pull, floors }) => {
      const before = fs.readFileSync(floors, 'utf8');
      fs.renameSync(`${host.paths.state}/trust`, `${host.paths.state}/trust.old`);
      const [, code] = await pull();
      assert.notEqual(code, 'METADATA_ROLLBACK');
      assert.notEqual(fs.readFileSync(floors, 'utf8'), before);
    }),
  );

  it('end with the boot', longCase, () =>
    withOlderServer(async ({ host, restoreOlderState, pull }) => {
      restoreOlderState();
      fs.rmSync(host.dir.join('run'), { recursive: true });
      assert.deepEqual(await pull(), [0, undefined, 'version 2']);
    }),
  );

  it('are ignored where their copy is damaged, and written again', longCase, () =>
    withOlderServer(async ({ restoreOlderState, pull, floors }) => {
      const good = fs.readFileSync(floors, 'utf8');
      fs.writeFileSync(floors, good.slice(0, -10));
      restoreOlderState();
      assert.deepEqual(await pull(), [0, undefined, 'version 2']);
      assert.equal(JSON.parse(fs.readFileSync(floors, 'utf8')).targets, JSON.parse(good).targets - 1);
    }),
  );
});

/** Each publish signs a newer timestamp: the versions pass those of the boot. */
async function publishUntilNewer(host: InstalledHost): Promise<void> {
  for (const version of [4, 5]) await publish(host, version);
}
