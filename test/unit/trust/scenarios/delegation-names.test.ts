// How a delegation may be written and a delegated role be named: names become names of files and of URLs, and no
// name may ever mean another role's file.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Loose } from '../../../kit/repository/repository-simulator.js';
import { addTeamRelease, benchWithTeams } from '../../../kit/trust/bench-with-teams.js';
import { trustBench } from '../../../kit/trust/trust-bench.js';

describe('names of delegated roles', () => {
  const names = [
    '?',
    '#',
    '/team',
    '../team',
    '..',
    '.',
    'a/b/c',
    'a%2Fb',
    'with space',
    'äöü-\u{1f511}',
    '1.root',
    'root.json',
    'TARGETS',
    '__proto__',
    'constructor',
    'toString',
    '~',
    'x'.repeat(200),
  ];
  for (const name of names) {
    it(`${name.slice(0, 20)}: is requested by its encoded name, stored, and used again without a request`, async () => {
      using bench = trustBench();
      bench.repository.delegate('targets', { name, paths: ['dns/*'] });
      addTeamRelease(bench.repository, 'dns', name);
      bench.repository.publish();
      await bench.refresh();
      bench.asked();
      assert.equal(await bench.find('dns'), 'trusted');
      assert.deepEqual(bench.asked(), [`1.${encodeURIComponent(name)}.json`]);
      assert.equal(bench.stored()[name], 1);
      bench.restart();
      await bench.refresh();
      bench.asked();
      assert.equal(await bench.find('dns'), 'trusted');
      assert.deepEqual(bench.asked(), []);
      assert.deepEqual(
        Object.entries(bench.stored()).filter(([role]) => role !== name),
        Object.entries({ root: 1, snapshot: 2, targets: 2, timestamp: 2 }),
      );
    });
  }

  it('that would be another role’s file are refused with the delegator', async () => {
    for (const name of ['root', 'timestamp', 'snapshot', 'targets', '', 'x'.repeat(300)]) {
      using bench = trustBench();
      await bench.refresh();
      bench.repository.targets.delegations = {
        keys: {},
        roles: [{ name, keyids: [], threshold: 1, paths: ['*/*'] }],
      };
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'METADATA_MALFORMED', name.slice(0, 20));
      assert.equal(bench.stored()['targets'], 1);
    }
  });
});

describe('how a delegation may be written', () => {
  const good = { name: 'team', keyids: [], threshold: 1, paths: ['*/*'] };
  const malformed: readonly [string, Loose][] = [
    ['no roles', { keys: {} }],
    ['no keys', { roles: [] }],
    ['roles that are an object', { keys: {}, roles: {} }],
    ['a role twice', { keys: {}, roles: [good, { ...good, paths: ['other/*'] }] }],
    ['a role without a name', { keys: {}, roles: [{ ...good, name: undefined }] }],
    ['a name that is a number', { keys: {}, roles: [{ ...good, name: 7 }] }],
    ['threshold 0', { keys: {}, roles: [{ ...good, threshold: 0 }] }],
    ['no threshold', { keys: {}, roles: [{ ...good, threshold: undefined }] }],
    ['key ids that are none', { keys: {}, roles: [{ ...good, keyids: [1] }] }],
    ['terminating that is a word', { keys: {}, roles: [{ ...good, terminating: 'yes' }] }],
    ['neither paths nor prefixes', { keys: {}, roles: [{ ...good, paths: undefined }] }],
    ['paths and prefixes', { keys: {}, roles: [{ ...good, path_hash_prefixes: ['a'] }] }],
    ['paths that are one', { keys: {}, roles: [{ ...good, paths: '*/*' }] }],
    [
      'a prefix that is no hex',
      { keys: {}, roles: [{ ...good, paths: undefined, path_hash_prefixes: ['g'] }] },
    ],
    ['delegations that are a list', []],
    ['a key without a scheme', { keys: { x: { keytype: 'ed25519', keyval: { public: '' } } }, roles: [] }],
  ];

  it('is read strictly, in the targets as in a delegated role', async () => {
    using bench = benchWithTeams();
    await bench.refresh();
    for (const [name, delegations] of malformed) {
      // What is undefined is left out.
      const value = JSON.parse(JSON.stringify(delegations));
      bench.repository.alter('dns', (signed) => (signed.delegations = value));
      assert.equal(await bench.find('dns'), 'METADATA_MALFORMED', name);
    }
    bench.repository.publish();
    for (const [name, delegations] of malformed) {
      const value = JSON.parse(JSON.stringify(delegations));
      bench.repository.alter('targets', (signed) => (signed.delegations = value));
      assert.equal(await bench.refresh(), 'METADATA_MALFORMED', name);
    }
    bench.repository.alter('targets', () => undefined);
    assert.equal(await bench.refresh(), 'trusted');
  });

  it('without `terminating` means that it is not', async () => {
    for (const terminating of [undefined, false]) {
      using bench = trustBench();
      const { repository } = bench;
      repository.delegate('targets', {
        name: 'first',
        paths: ['*/*'],
        ...(terminating === undefined ? {} : { terminating }),
      });
      repository.delegate('targets', { name: 'second', paths: ['*/*'] });
      addTeamRelease(repository, 'dns', 'second');
      repository.publish();
      const [first] = repository.targets.delegations.roles;
      assert.equal(Object.hasOwn(first, 'terminating'), terminating !== undefined);
      await bench.refresh();
      assert.equal((await bench.client.target('dns', 'stable'))?.vouchedBy.role, 'second');
    }
  });

  it('may have an empty role, and unknown members', async () => {
    using bench = benchWithTeams();
    const { repository } = bench;
    Object.assign(repository.targets.delegations, { 'x-note': 1, succinct: null });
    Object.assign(repository.targets.delegations.roles[1], { 'x-owner': 'web' });
    repository.signedOf('dns').targets = {};
    repository.publish();
    await bench.refresh();
    assert.equal(await bench.find('dns'), 'unknown');
    assert.equal(await bench.find('web'), 'trusted');
  });
});
