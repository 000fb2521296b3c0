// Delegated roles that cost far more to read than to send, as an attacker with a team's key, the online keys and a mirror
// signs them. With the error code that a host must report for each.
import type { ErrorCode } from '../../../src/core/error-codes.js';
import type { RepositorySimulator } from '../repository/repository-simulator.js';
import { makeKey, makeKeys } from '../repository/simulated-keys.js';

export interface DelegationBomb {
  /** Also the name of the bundle; its search reads the role. */
  readonly name: string;
  readonly code: ErrorCode;
  plant(repository: RepositorySimulator): void;
}

/** Just below the maximum bytes of a targets file. */
const fileBytes = 4_900_000;

/** @returns as many empty objects as one file may have: 60 MB after parsing */
const heavy = (): unknown[] => Array.from({ length: fileBytes / 18 }, () => ({}));

/** The parser allows this density of empty objects only together with some text. */
function makeHeavy(repository: RepositorySimulator, role: string): void {
  Object.assign(repository.signedOf(role), {
    x: heavy(),
    y: 'y'.repeat(fileBytes - (fileBytes / 18) * 3 - 1000),
  });
}

const pathsOf = (name: string): readonly string[] => [`${name}/*`];

export const delegationBombs: readonly DelegationBomb[] = [
  {
    name: 'deep',
    code: 'DELEGATION_LIMIT',
    plant: (repository) => chain(repository, 'deep', ['targets', 'deep-1', 'deep-2', 'deep-3', 'deep-4']),
  },
  {
    name: 'wide',
    code: 'DELEGATION_LIMIT',
    plant: (repository) => {
      for (const role of ['wide-1', 'wide-2', 'wide-3', 'wide-4'])
        chain(repository, 'wide', ['targets', role]);
    },
  },
  {
    name: 'circle',
    code: 'TARGET_UNKNOWN',
    plant: (repository) => {
      chain(repository, 'circle', ['targets', 'circle-1']);
      repository.delegate('circle-1', { name: 'circle-2', paths: pathsOf('circle') });
      repository.delegate('circle-2', { name: 'circle-1', paths: pathsOf('circle') });
    },
  },
  {
    name: 'patterns',
    code: 'TARGET_UNKNOWN',
    plant: (repository) => {
      const delegated = repository.delegate('targets', { name: 'patterns-1', paths: pathsOf('patterns') });
      const paths = Array.from(
        { length: fileBytes / 24 },
        (_, at) => `patterns/*a*b*${String(at).padStart(6, '0')}`,
      );
      delegated.signed.delegations = { keys: {}, roles: [{ name: 'x', keyids: [], threshold: 1, paths }] };
    },
  },
  {
    name: 'keys',
    code: 'TARGET_UNKNOWN',
    plant: (repository) => {
      const { signed } = repository.delegate('targets', { name: 'keys-1', paths: pathsOf('keys') });
      const { key } = makeKey();
      const ids = Array.from({ length: fileBytes / 260 }, (_, at) => String(at).padStart(64, '0'));
      const keys = Object.fromEntries(ids.map((id) => [id, key]));
      const role = { name: 'x', keyids: ids, threshold: 1, paths: ['y/*'] };
      signed.delegations = { keys, roles: [role] };
    },
  },
  {
    name: 'signers',
    code: 'METADATA_MALFORMED',
    plant: (repository) => {
      const keys = makeKeys(100);
      repository.delegate('targets', { name: 'signers-1', paths: pathsOf('signers'), keys, threshold: 100 });
    },
  },
];

/** Each role of the chain delegates to the next one, and has the maximum size. */
function chain(repository: RepositorySimulator, bundle: string, path: readonly string[]): void {
  for (const [at, role] of path.slice(1).entries()) {
    repository.delegate(path[at] ?? '', { name: role, paths: pathsOf(bundle) });
  }
  for (const role of new Set(path.slice(1))) makeHeavy(repository, role);
}
