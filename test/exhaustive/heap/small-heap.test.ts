// An agent on a host of little memory, for real: each manifest of the corpus, and each tree of delegated roles, is signed and
// offered beside a good bundle.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { quietPolls } from '../../kit/agent/quiet-polls.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { bundleTar, manifestOf, pack, sha256 } from '../../kit/repository/archive-builder.js';
import { type ManifestBomb, manifestBombs } from '../../kit/repository/manifest-bombs.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';
import { writeSimulated } from '../../kit/repository/simulated-on-disk.js';
import { delegationBombs } from '../../kit/trust/delegation-bombs.js';

const heap = { NODE_OPTIONS: '--max-old-space-size=256' };

describe('an agent with 256 MB of heap', () => {
  it('refuses each bomb by its code, remembers it, and activates the good bundle beside it', async () => {
    using dir = tempDir();
    const repository = new RepositorySimulator({ nowMs: Date.now() });
    const codes = new Map<string, string>();
    for (const bomb of manifestBombs()) codes.set(offer(repository, bomb), bomb.code);
    const { config } = writeHost(dir, repository, [...codes.keys(), 'good']);
    await using agent = startWrit(['agent', '--config', config], heap);
    await agent.waitForStderr(/"state":"run"/);
    await runWrit(['pull', '--json', '--config', config]);
    assert.equal(agent.child.exitCode, null, agent.stderr().slice(-2000));
    const refused = await runWrit(['refusals', '--json', '--config', config]);
    const known = JSON.parse(refused.stdout) as { refusals: { bundle: string; code: string }[] };
    assert.deepEqual(
      Object.fromEntries(known.refusals.map(({ bundle, code }) => [bundle, code])),
      Object.fromEntries(codes),
    );
    assert.equal(readFileSync(dir.join('policy', 'current', 'good', 'policy.yaml'), 'utf8'), 'allow: all\n');
    // The processors may be others' for a while: what counts is what the agent took of them.
    assert.ok(cpuSeconds(agent.child.pid) < 40, `${cpuSeconds(agent.child.pid)} s of CPU`);
  });

  it('gives each tree of delegated roles its code, again and again, and activates the good bundle beside it', async () => {
    using dir = tempDir();
    const repository = new RepositorySimulator({ nowMs: Date.now() });
    for (const bomb of delegationBombs) bomb.plant(repository);
    const { config } = writeHost(dir, repository, [...delegationBombs.map(({ name }) => name), 'good']);
    await using agent = startWrit(['agent', '--config', config], heap);
    await agent.waitForStderr(/"state":"run"/);
    for (const time of ['first', 'second']) {
      const { stdout } = await runWrit(['pull', '--json', '--config', config]);
      assert.equal(agent.child.exitCode, null, agent.stderr().slice(-2000));
      const { bundles } = JSON.parse(stdout) as {
        bundles: { bundle: string; problem?: { code: string } }[];
      };
      assert.deepEqual(
        bundles.map(({ bundle, problem }) => [bundle, problem?.code]),
        [...delegationBombs.map(({ name, code }) => [name, code]), ['good', undefined]],
        time,
      );
    }
    assert.equal(readFileSync(dir.join('policy', 'current', 'good', 'policy.yaml'), 'utf8'), 'allow: all\n');
    assert.ok(cpuSeconds(agent.child.pid) < 60, `${cpuSeconds(agent.child.pid)} s of CPU`);
  });
});

/** A repository that has a good bundle too, and a host that is to have all of these. */
function writeHost(
  dir: TempDir,
  repository: RepositorySimulator,
  bundles: readonly string[],
): { readonly config: string } {
  const files = [{ path: 'policy.yaml', content: 'allow: all\n' }];
  const manifest = manifestOf(files);
  repository.addRelease(
    {
      bundle: 'good',
      channel: 'stable',
      serial: 3,
      manifest: { digest: sha256(manifest), length: manifest.length },
    },
    pack(bundleTar(files)),
  );
  repository.publish();
  const [config, root] = [dir.join('agent.yaml'), dir.join('root.json')];
  writeFileSync(root, repository.bootstrapRoot);
  const places = {
    repository: writeSimulated(repository, dir.join('repository')),
    root,
    state: dir.join('state'),
    policy: dir.join('policy'),
    run: dir.join('run'),
  };
  const names = bundles.map((name) => ({ name }));
  writeFileSync(config, JSON.stringify({ ...quietPolls(), ...places, bundles: names }));
  return { config };
}

/** User and system time so far, in ticks of a hundredth. */
function cpuSeconds(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** @returns the name of the bundle */
function offer(
  repository: RepositorySimulator,
  { name, archive, manifest, manifestLength }: ManifestBomb,
): string {
  const bundle = name.replaceAll(' ', '-');
  const length = manifestLength ?? manifest.length;
  repository.addRelease(
    { bundle, channel: 'stable', manifest: { digest: sha256(manifest), length } },
    archive,
  );
  return bundle;
}
