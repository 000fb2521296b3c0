// A refresh against the trust floors of a boot: each role, with a file that is fetched and with one that is stored already.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError } from '../../../src/core/errors.js';
import { type TopLevelRole, topLevelRoles } from '../../../src/core/tuf/tuf-metadata.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import type { TrustFloors } from '../../../src/trust/store/floor-rules.js';
import { memoryTrustStore, openTrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { memory, type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

const nowMs = Date.UTC(2026, 10, 1);

function scene() {
  const repository = new RepositorySimulator({ nowMs });
  let floors: TrustFloors | undefined;
  const store = { ...memoryTrustStore(repository.bootstrapRoot), floors: () => floors };
  const client = openRepositoryClient({ source: repository.source(), store, clock: fakeClock({ nowMs }) });
  return {
    refresh: () => client.refresh(),
    setFloors: (next: TrustFloors) => {
      floors = next;
    },
  };
}

async function currentVersions(): Promise<TrustFloors> {
  const { roles } = await scene().refresh();
  return Object.fromEntries(topLevelRoles.map((role) => [role, roles[role].version])) as Record<
    TopLevelRole,
    number
  >;
}

describe('a refresh below the trust floors', () => {
  for (const role of topLevelRoles) {
    it(`is a rollback of the ${role} role, fetched for the first time`, async () => {
      const versions = await currentVersions();
      const { refresh, setFloors } = scene();
      setFloors({ ...versions, [role]: versions[role] + 1 });
      const facts = { role, expected: versions[role] + 1, actual: versions[role] };
      await assert.rejects(refresh(), (error: { code?: string; facts?: Record<string, unknown> }) => {
        assert.deepEqual(
          [error.code, error.facts?.['role'], error.facts?.['expected']],
          ['METADATA_ROLLBACK', role, facts.expected],
        );
        return true;
      });
    });

    it(`is a rollback of the ${role} role, stored before`, async () => {
      const versions = await currentVersions();
      const { refresh, setFloors } = scene();
      await refresh();
      setFloors({ ...versions, [role]: versions[role] + 1 });
      await assert.rejects(refresh(), { code: 'METADATA_ROLLBACK' });
    });
  }

  it('succeeds at the floors', async () => {
    const { refresh, setFloors } = scene();
    setFloors(await currentVersions());
    await refresh();
  });
});

describe('a host that lost its state and has the floors of the boot', () => {
  const clock = fakeClock({ nowMs });

  /** Refreshes with an empty state directory, whose mark is another one each time. */
  function emptied(repository: RepositorySimulator, dir: TempDir, mark: string) {
    writeFileSync(dir.join('root.json'), repository.bootstrapRoot);
    const store = openTrustStore({
      directory: dir.join(mark),
      bootstrapRoot: dir.join('root.json'),
      fs: createDurableFs(),
      floors: { path: dir.join('floors'), boot: 'boot', mark: () => mark, onDamaged: assert.fail },
    });
    return openRepositoryClient({ source: repository.source(), store, clock }).refresh();
  }

  for (const { how, listed } of [
    { how: 'in an older version', listed: { version: 2 } },
    { how: 'no more', listed: undefined },
  ])
    it(`refuses a snapshot of the online keys that lists a delegated role ${how}`, async () => {
      using dir = tempDir(memory());
      const repository = new RepositorySimulator({ nowMs });
      repository.delegate('targets', { name: 'dns-team', paths: ['dns/*'] });
      repository.signedOf('dns-team').version = 3;
      repository.publish();
      await emptied(repository, dir, 'first');
      // The keys of targets and of the team sign nothing: the other versions grow, and that of the team does not.
      const before = repository.snapshot.meta['dns-team.json'];
      if (listed === undefined) delete repository.snapshot.meta['dns-team.json'];
      else repository.snapshot.meta['dns-team.json'] = listed;
      repository.bumpSnapshot();
      await assert.rejects(emptied(repository, dir, 'second'), (error: unknown) => {
        assert.ok(isWritError(error) && error.code === 'METADATA_ROLLBACK', String(error));
        assert.deepEqual([error.facts['role'], error.facts['expected']], ['dns-team', 3]);
        return true;
      });
      repository.snapshot.meta['dns-team.json'] = before;
      repository.bumpSnapshot();
      await emptied(repository, dir, 'third');
    });
});
