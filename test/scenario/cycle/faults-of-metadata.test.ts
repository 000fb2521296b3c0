// Metadata that must not be trusted, one attack in each row: a host with an active policy keeps it, and reports the reason.
import { type Fault, faultTable, publishNext } from '../../kit/assert/fault-table.js';
import type { TestHost } from '../../kit/host/test-host.js';
import {
  makeKey,
  type RepositorySimulator,
  type SimulatedKey,
} from '../../kit/repository/repository-simulator.js';

const dayMs = 86_400_000;

type OnlineRole = 'timestamp' | 'snapshot' | 'targets';

/** Publishes with other keys in one role, as an attacker with control of the server alone does. */
async function signedBy(test: TestHost, role: OnlineRole, forge: (own: SimulatedKey) => SimulatedKey[]) {
  const { keys } = test.repository;
  keys[role] = keys[role].flatMap(forge);
  await publishNext(test);
}

async function expired(test: TestHost, role: OnlineRole): Promise<void> {
  const { repository, clock } = test;
  repository[role].expires = new Date(clock.nowMs() + 1000).toISOString().replace('.000', '');
  await publishNext(test);
  await clock.advance(2000);
}

/** The server sends an older file under a newer name. */
function replayed(repository: RepositorySimulator, name: string, older: string): void {
  repository.serve(name, repository.file(older));
}

faultTable('metadata that may not be trusted leaves the policy alone', [
  ...(['timestamp', 'snapshot', 'targets'] as const).flatMap((role): Fault[] => [
    {
      name: `${role} signed by a foreign key`,
      harm: (test) => signedBy(test, role, () => [makeKey()]),
      code: 'SIGNATURE_WRONG_KEY',
      exit: 1,
    },
    {
      name: `${role} signed by a foreign key that calls itself the right one`,
      harm: (test) => signedBy(test, role, ({ id }) => [{ ...makeKey(), id }]),
      code: 'SIGNATURE_THRESHOLD',
      exit: 1,
    },
    {
      name: `${role} signed twice by one key`,
      harm: (test) => signedBy(test, role, (own) => [own, own]),
      code: 'SIGNATURE_DUPLICATE',
      exit: 1,
    },
    { name: `${role} has expired`, harm: (test) => expired(test, role), code: 'METADATA_EXPIRED', exit: 1 },
  ]),
  {
    name: 'the root has expired, and everything else is fresh',
    harm: async ({ repository, clock }) => {
      repository.targets.expires = repository.timestamp.expires = '2028-01-01T00:00:00Z';
      repository.snapshot.expires = '2028-01-01T00:00:00Z';
      repository.publish();
      await clock.advance(366 * dayMs);
    },
    code: 'METADATA_EXPIRED',
    exit: 1,
  },
  {
    name: 'nothing new for longer than the timestamp lives: a freeze',
    harm: ({ clock }) => clock.advance(8 * dayMs),
    code: 'METADATA_EXPIRED',
    exit: 1,
  },
  {
    name: 'a replay of the timestamp from before the last release',
    harm: async (test) => {
      const old = test.repository.file('timestamp.json');
      await publishNext(test);
      await test.pull();
      test.repository.serve('timestamp.json', old);
    },
    code: 'METADATA_ROLLBACK',
    exit: 1,
  },
  {
    name: 'a stolen timestamp key leads back to an older snapshot',
    harm: ({ repository }) => {
      repository.timestamp.version += 1;
      repository.timestamp.meta['snapshot.json'].version = 1;
      repository.writeTimestamp();
    },
    code: 'METADATA_ROLLBACK',
    exit: 1,
  },
  {
    name: 'the snapshot of one time with the targets of another',
    harm: async (test) => {
      await publishNext(test);
      replayed(test.repository, '3.targets.json', '2.targets.json');
    },
    code: 'METADATA_MIX',
    exit: 1,
  },
  {
    name: 'the timestamp of one time with the snapshot of another',
    harm: async (test) => {
      await publishNext(test);
      replayed(test.repository, '3.snapshot.json', '2.snapshot.json');
    },
    code: 'METADATA_MIX',
    exit: 1,
  },
  {
    name: 'a snapshot that is not there',
    harm: async (test) => {
      await publishNext(test);
      test.repository.files.delete('metadata/3.snapshot.json');
    },
    code: 'METADATA_MISSING',
    exit: 1,
  },
  {
    name: 'the page of a captive portal for a timestamp',
    harm: ({ repository }) =>
      repository.serve('timestamp.json', Buffer.from('<html>Please accept our terms</html>')),
    code: 'METADATA_MALFORMED',
    exit: 1,
  },
  {
    name: 'a next root of somebody else',
    harm: ({ repository }) => repository.bumpRoot([makeKey(), makeKey()]),
    code: 'SIGNATURE_WRONG_KEY',
    exit: 1,
  },
  {
    name: 'a next root that leaves one out',
    harm: ({ repository }) => {
      repository.bumpRoot();
      repository.bumpRoot();
      replayed(repository, '2.root.json', '3.root.json');
    },
    code: 'METADATA_MIX',
    exit: 1,
  },
]);
