import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDelegatedName, roleFileName } from '../../../../src/core/tuf/delegations.js';
import { parseEnvelope } from '../../../../src/core/tuf/tuf-metadata.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type Loose, RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

const repository = new RepositorySimulator({ nowMs: Date.UTC(2026, 10, 1) });
repository.delegate('targets', { name: 'team', paths: ['team/*'], terminating: true });
repository.delegate('targets', { name: 'bins', path_hash_prefixes: ['0', 'ab', 'f'.repeat(64)] });

/** The targets with two delegations, changed by the test. */
function changed(change: (delegations: Loose) => void, name?: string) {
  const signed = structuredClone(repository.targets);
  change(signed.delegations);
  const bytes = Buffer.from(JSON.stringify({ signatures: [], signed }));
  return () => parseEnvelope(bytes, 'targets', name);
}

describe('the delegations of a targets file', () => {
  it('are read in order, with optional members absent', () => {
    const { signed, name } = changed(() => undefined)();
    assert.equal(name, 'targets');
    const roles = signed.delegations?.roles ?? [];
    assert.deepEqual(
      roles.map((role) => [role.name, role.terminating, role.paths, role.path_hash_prefixes?.length]),
      [
        ['team', true, ['team/*'], undefined],
        ['bins', undefined, undefined, 3],
      ],
    );
    assert.equal(Object.getPrototypeOf(signed.delegations?.keys), null);
  });

  it('may be absent or empty', () => {
    const signed = { ...repository.targets, delegations: undefined };
    const bytes = Buffer.from(JSON.stringify({ signatures: [], signed }));
    assert.equal(parseEnvelope(bytes, 'targets').signed.delegations, undefined);
    const none = changed((delegations) => Object.assign(delegations, { roles: [], keys: {} }))();
    assert.deepEqual(none.signed.delegations?.roles, []);
  });

  it('keep unknown members', () => {
    const file = changed((delegations) => Object.assign(delegations.roles[0], { 'x-note': 'hello' }))();
    assert.match(Buffer.from(file.signedBytes).toString(), /"x-note":"hello"/);
  });

  const wrong: [string, string, (delegations: Loose) => void][] = [
    ['no keys', 'delegations.keys', (d) => delete d.keys],
    ['no roles', 'delegations.roles', (d) => delete d.roles],
    ['roles that are none', 'delegations.roles[]', (d) => d.roles.push('team')],
    [
      'a key that is none',
      'delegations.keys.abc.scheme',
      (d) => Object.assign(d.keys, { abc: { keytype: 'x' } }),
    ],
    ['a role without a name', 'delegations.roles[].name', (d) => delete d.roles[0].name],
    ['a name twice', 'delegations.roles[].name', (d) => d.roles.push(structuredClone(d.roles[0]))],
    [
      'a threshold of 0',
      'delegations.roles.team.threshold',
      (d) => Object.assign(d.roles[0], { threshold: 0 }),
    ],
    ['no threshold', 'delegations.roles.team.threshold', (d) => delete d.roles[0].threshold],
    ['no key ids', 'delegations.roles.team.keyids', (d) => delete d.roles[0].keyids],
    ['neither paths nor prefixes', 'delegations.roles.team.paths', (d) => delete d.roles[0].paths],
    [
      'paths and prefixes',
      'delegations.roles.team.paths',
      (d) => Object.assign(d.roles[0], { path_hash_prefixes: [] }),
    ],
    ['paths that are none', 'delegations.roles.team.paths[]', (d) => d.roles[0].paths.push(1)],
    ['paths as text', 'delegations.roles.team.paths', (d) => Object.assign(d.roles[0], { paths: '*' })],
    [
      'a terminating that is no boolean',
      'delegations.roles.team.terminating',
      (d) => Object.assign(d.roles[0], { terminating: 'false' }),
    ],
    ...['', 'AB', 'xy', 'f'.repeat(65), 7].map((prefix): [string, string, (d: Loose) => void] => [
      `the prefix ${JSON.stringify(prefix)}`,
      'delegations.roles.bins.path_hash_prefixes[]',
      (d) => d.roles[1].path_hash_prefixes.push(prefix),
    ]),
    ...['root', 'timestamp', 'snapshot', 'targets', '', 'x'.repeat(201), 'ä'.repeat(50)].map(
      (name): [string, string, (d: Loose) => void] => [
        `a role named ${JSON.stringify(name.slice(0, 20))}`,
        'delegations.roles[].name',
        (d) => Object.assign(d.roles[0], { name }),
      ],
    ),
  ];
  for (const [name, member, change] of wrong) {
    it(`are refused with ${name}`, () => {
      const { facts } = throwsCode('METADATA_MALFORMED', changed(change, 'regions'));
      assert.deepEqual([facts['role'], facts['member']], ['regions', member]);
    });
  }

  it('are rejected with duplicate JSON members', () => {
    const text = JSON.stringify({ signatures: [], signed: repository.targets });
    const twins = text.replace('"threshold":1', '"threshold":2,"threshold":1');
    assert.notEqual(twins, text);
    throwsCode('METADATA_MALFORMED', () => parseEnvelope(Buffer.from(twins), 'targets'));
  });
});

describe('names of delegated roles', () => {
  it('may be any text except the name of a top-level role', () => {
    for (const name of [
      'team',
      '..',
      '.',
      '/',
      '../x',
      'a?b',
      '#',
      'Root',
      'root ',
      '1.root',
      'root.json',
      '__proto__',
      'ä',
      '\u{1f600}',
      'x'.repeat(200),
    ]) {
      assert.equal(isDelegatedName(name), true, name);
    }
    for (const name of ['', 'root', 'targets', 'x'.repeat(201), '\u{1f600}'.repeat(17), '\ud800']) {
      assert.equal(isDelegatedName(name), false, name);
    }
  });

  it('become unique file names inside their directory', () => {
    const names = [
      'a/b',
      'a%2Fb',
      'a%252Fb',
      'a b',
      'a+b',
      '..',
      '../../../',
      'a\\b',
      'a\0b',
      'A',
      'a',
      '?',
      '#',
      '*',
    ];
    const files = names.map((name) => `1.${roleFileName(name)}.json`);
    assert.equal(new Set(files).size, names.length);
    for (const file of files) assert.doesNotMatch(file, /[/\\?#\0]/);
    assert.deepEqual(
      files.map((file) => decodeURIComponent(file.slice(2, -5))),
      names,
    );
  });
});
