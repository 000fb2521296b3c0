import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { recallFiles, type TrustedSet, trustFirstRoot } from '../../../src/core/tuf/trusted-set.js';
import { rememberVerdicts } from '../../../src/trust/release-verdicts.js';
import { RepositorySimulator } from '../../kit/repository/repository-simulator.js';

const content = Buffer.from('an archive');

/** A team lists so many releases in a file of at least so many bytes; all of them are kept. */
function site(paths: readonly string[], bytes = 0) {
  const repository = new RepositorySimulator({ nowMs: Date.UTC(2026, 10, 1), consistent: false });
  repository.delegate('targets', { name: 'team', paths: ['team/*'] });
  for (const path of paths) repository.addTarget(path, content, { listedBy: 'team' });
  if (bytes > 0) repository.addTarget(`team/${'x'.repeat(bytes)}`, content, { listedBy: 'team' });
  repository.publish();
  const [timestamp, snapshot, targets] = ['timestamp', 'snapshot', 'targets'].map((role) =>
    repository.file(`${role}.json`),
  );
  const root = trustFirstRoot(repository.file('1.root.json'));
  const set = recallFiles(root, { timestamp: timestamp!, snapshot: snapshot!, targets: targets! });
  const read: string[] = [];
  const verdictOf = rememberVerdicts((name) => {
    read.push(name);
    return repository.file(`${name}.json`);
  });
  const judge = (by: TrustedSet): string[] =>
    paths.map((path) => {
      const { length, hashes } = repository.signedOf('team').targets[path];
      const verdict = verdictOf(by, {
        path,
        length,
        sha256: hashes.sha256,
        role: 'team',
        metadata: assert.fail,
      });
      return verdict.kind;
    });
  return { set, read, judge };
}

describe('verdicts on retained releases', () => {
  const paths = ['team/a', 'team/b', 'team/c'];
  const good = paths.map(() => 'verifies');

  it('read a role once for all that it lists, and again when the metadata changes', () => {
    const { set, read, judge } = site(paths);
    assert.deepEqual(judge(set), good);
    assert.deepEqual(judge(set), good);
    assert.deepEqual(read, ['team']);
    assert.deepEqual(judge({ ...set, delegated: new Map() }), good);
    assert.deepEqual(read, ['team', 'team']);
  });

  it('do not cache a file of more than 2 MB', () => {
    const { set, read, judge } = site(paths, 2_000_000);
    assert.deepEqual(judge(set), good);
    assert.deepEqual(read, ['team', 'team', 'team']);
  });
});
