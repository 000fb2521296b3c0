import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ReleaseProof, stillVerifies } from '../../../../src/core/tuf/still-verifies.js';
import {
  recallFile,
  recallFiles,
  type TrustedSet,
  trustFirstRoot,
} from '../../../../src/core/tuf/trusted-set.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

const nowMs = Date.UTC(2026, 10, 1);
const path = 'dns-edge/stable.tar.br';
const bytes = Buffer.from('an archive');

interface Site {
  readonly repository: RepositorySimulator;
  /** The trusted set of a host that took everything as it is served now. */
  set(): TrustedSet;
  kept(name: string): ReturnType<typeof recallFile<'targets'>>;
  /** As the record of a release taken now. */
  proof(role: string): ReleaseProof;
}

/** `dns-edge` is signed by a team to which the targets delegate. */
function site(): Site {
  const repository = new RepositorySimulator({ nowMs, consistent: false });
  repository.delegate('targets', { name: 'dns-team', paths: ['dns-*/*'] });
  repository.addTarget(path, bytes, { listedBy: 'dns-team' });
  repository.publish();
  const stored = (name: string) => repository.files.get(`metadata/${name}.json`);
  return {
    repository,
    kept: (name) => recallFile(stored(name), 'targets', name),
    set: () => {
      const root = trustFirstRoot(repository.file(`${repository.root.version}.root.json`));
      const [timestamp, snapshot, targets] = ['timestamp', 'snapshot', 'targets'].map((role) =>
        repository.file(`${role}.json`),
      );
      return recallFiles(root, { timestamp: timestamp!, snapshot: snapshot!, targets: targets! });
    },
    proof: (role) => {
      const file = repository.signedOf(role).targets[path];
      const metadata = stored(role);
      return { path, length: file.length, sha256: file.hashes.sha256, role, metadata: () => metadata };
    },
  };
}

function verdict(it: Site, proof: ReleaseProof): string {
  const found = stillVerifies(it.set(), proof, it.kept);
  return found.kind === 'verifies' ? found.by : found.kind;
}

describe('a release by a delegated role still verifies', () => {
  it('while the role lists it, without reading the record', () => {
    const it = site();
    const proof = { ...it.proof('dns-team'), metadata: () => assert.fail('the record was read') };
    assert.equal(verdict(it, proof), 'listed');
  });

  it('when the role lists another one by the same keys', () => {
    const it = site();
    const proof = it.proof('dns-team');
    it.repository.addTarget(path, Buffer.from('the next archive'), { listedBy: 'dns-team' });
    it.repository.publish();
    assert.equal(verdict(it, proof), 'record');
  });

  it('when another role delegates to it on the same path', () => {
    const it = site();
    const proof = it.proof('dns-team');
    const { targets, delegated } = it.repository;
    targets.delegations = undefined;
    delete targets.delegations;
    const keys = delegated.get('dns-team')!.keys;
    it.repository.signedOf('dns-team').targets = {};
    it.repository.delegate('targets', { name: 'regions', paths: ['dns-*/*'] });
    it.repository.delegate('regions', { name: 'dns-team', paths: ['dns-edge/*'], keys });
    it.repository.publish();
    assert.equal(verdict(it, proof), 'record');
  });
});

/** Puts this many roles between the targets and `dns-team`, which lists nothing any more. */
function lengthenChain({ repository }: Site, count: number): void {
  const { keys } = repository.delegated.get('dns-team')!;
  delete repository.targets.delegations;
  repository.signedOf('dns-team').targets = {};
  const names = Array.from({ length: count }, (_, index) => `step-${index + 1}`);
  let delegator = 'targets';
  for (const name of names) {
    repository.delegate(delegator, { name, paths: ['dns-*/*'] });
    delegator = name;
  }
  repository.delegate(delegator, { name: 'dns-team', paths: ['dns-*/*'], keys });
  repository.publish();
}

describe('a release by a delegated role verifies no more', () => {
  const changes: Readonly<Record<string, (it: Site) => void>> = {
    'when the delegation is gone': ({ repository }) => {
      delete repository.targets.delegations;
    },
    'when the role was given other keys': ({ repository }) => {
      delete repository.targets.delegations;
      repository.delegated.delete('dns-team');
      repository.delegate('targets', { name: 'dns-team', paths: ['dns-*/*'] });
    },
    'when the delegation does not cover the path any more': ({ repository }) => {
      const [role] = repository.targets.delegations.roles;
      role.paths = ['dns-core/*'];
    },
    'when another role has its keys': ({ repository }) => {
      const [role] = repository.targets.delegations.roles;
      role.name = 'other-team';
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    it(name, () => {
      const it = site();
      const proof = it.proof('dns-team');
      change(it);
      it.repository.publish();
      assert.equal(verdict(it, proof), 'untrusted');
    });
  }

  it('when the stored file of the role that lists it has other signers', () => {
    const [it, theirs] = [site(), site()];
    const proof = theirs.proof('dns-team');
    assert.equal(stillVerifies(theirs.set(), proof, theirs.kept).kind, 'verifies');
    assert.equal(stillVerifies(it.set(), proof, theirs.kept).kind, 'untrusted');
  });

  it('when the search would visit more roles than the bound', () => {
    for (const [count, expected] of [
      [32, 'record'],
      [33, 'untrusted'],
    ] as const) {
      const it = site();
      const proof = it.proof('dns-team');
      lengthenChain(it, count);
      assert.equal(verdict(it, proof), expected, `${count} roles`);
    }
  });

  it('when its record claims another role, or cannot be read, or does not list it', () => {
    const it = site();
    const proof = it.proof('dns-team');
    it.repository.signedOf('dns-team').targets = {};
    it.repository.publish();
    assert.equal(verdict(it, proof), 'record');
    for (const wrong of [
      { role: 'targets' },
      { metadata: () => undefined },
      { metadata: () => Buffer.from('{') },
      { sha256: '0'.repeat(64) },
      { length: bytes.length + 1 },
      { path: 'dns-edge/canary.tar.br' },
    ]) {
      assert.equal(verdict(it, { ...proof, ...wrong }), 'untrusted', JSON.stringify(wrong));
    }
  });
});
