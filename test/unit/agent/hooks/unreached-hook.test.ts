import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { hookError } from '../../../../src/agent/hooks/hook.js';
import { runHook } from '../../../../src/agent/hooks/run-hook.js';
import type { HookConfig } from '../../../../src/core/config/config.js';
import type { HookVerdict } from '../../../../src/core/cycle/hook-verdict.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

type Words = Pick<HookConfig, 'reject' | 'unreachable' | 'notNow' | 'pidFile'>;

async function verdictOf(dir: TempDir, script: string, words: Words): Promise<HookVerdict> {
  const hook: HookConfig = { run: ['sh', '-c', script], timeoutMs: 60_000, ...words };
  const { verdict } = await runHook({ hook, places: {}, scratchRoot: dir.path, durable: createDurableFs() });
  return verdict;
}

const noConnection = 'echo "rndc: connect failed: 127.0.0.1#953" >&2; exit 1';
/** No process has it: above the greatest that a kernel gives. */
const deadPid = 4_194_305;

const preload =
  'echo "ERROR: ld.so: object \'/x.so\' from /etc/ld.so.preload cannot be preloaded: ignored." >&2; ';

const cases: readonly (readonly [what: string, script: string, words: Words, kind: HookVerdict['kind']])[] = [
  ['a no without any word on it', noConnection, {}, 'refused'],
  ['a no with the code of nobody there', noConnection, { unreachable: { exit: [1, 2] } }, 'unreachable'],
  ['a no with another code', 'exit 3', { unreachable: { exit: [1, 2] } }, 'refused'],
  [
    'a no with the words of nobody there',
    noConnection,
    { unreachable: { match: 'connect failed' } },
    'unreachable',
  ],
  ['a no with other words', 'echo bad zone; exit 1', { unreachable: { match: 'connect failed' } }, 'refused'],
  [
    'a code without the words',
    'echo bad; exit 1',
    { unreachable: { exit: [1], match: '^connect' } },
    'refused',
  ],
  [
    'the words without the code',
    'echo connect; exit 2',
    { unreachable: { exit: [1], match: '^connect' } },
    'refused',
  ],
  ['both', 'echo connect; exit 1', { unreachable: { exit: [1], match: '^connect' } }, 'unreachable'],
  [
    'a no behind a line of the dynamic loader',
    `${preload}${noConnection}`,
    { unreachable: { match: '^rndc' } },
    'unreachable',
  ],
  [
    'a yes behind such a line, for a pattern that would reject it',
    `${preload}exit 0`,
    { reject: 'ERROR' },
    'ok',
  ],
  [
    'a no behind the line of a library of another distribution',
    `echo "rndc: /opt/lib/libx.so.4: no version information available (required by rndc)" >&2; ${noConnection}`,
    { unreachable: { match: '^rndc: connect failed' } },
    'unreachable',
  ],
  [
    'a no of its own that ends nearly so',
    'echo "bad: zone: no version information available (required by SOA) in line 3" >&2; exit 1',
    { unreachable: { match: '^rndc' } },
    'refused',
  ],
  ['a line of its own that looks nearly so', 'echo "ERROR: line 3" >&2', { reject: 'ERROR' }, 'refused'],
  ['a code of "not now"', 'exit 9', { notNow: { exit: [9] } }, 'deferred'],
  ['words of "not now"', 'echo busy; exit 1', { notNow: { match: '^busy' } }, 'deferred'],
  [
    'words of "not now" in a later line',
    'echo bad; echo busy; exit 1',
    { notNow: { match: '^busy' } },
    'refused',
  ],
  ['"not now" that is rejected too', 'echo busy; exit 75', { reject: 'busy' }, 'refused'],
  [
    '"not now" and nobody there',
    'exit 1',
    { notNow: { exit: [1] }, unreachable: { exit: [1] } },
    'unreachable',
  ],
  ['a yes with words of "not now"', 'echo busy', { notNow: { match: 'busy' } }, 'ok'],
  ['what is rejected too', noConnection, { unreachable: { exit: [1] }, reject: 'connect' }, 'refused'],
  ['a yes with these words', 'echo connect failed', { unreachable: { match: 'connect failed' } }, 'ok'],
  [
    '"not now" with these words',
    'echo connect failed; exit 75',
    { unreachable: { match: 'connect' } },
    'deferred',
  ],
  ['a killed program', 'kill -9 $$', { unreachable: { match: '' } }, 'broken'],
  [
    'a pattern that takes for ever',
    `printf '%040d!' 0; exit 1`,
    { unreachable: { match: '(0+)+$' } },
    'refused',
  ],
];

/** Words that a policy put into the output of a program that read it, to have its refusal excused. */
const excuse = { unreachable: { match: '^(rndc: )?connect failed' } };
const talk: readonly (readonly [where: string, script: string])[] = [
  ['in a later line', `echo 'zone.db:3: syntax error' >&2; echo 'connect failed' >&2; exit 1`],
  ['on stdout, before the complaint', `echo 'connect failed'; echo 'zone.db:3: syntax error' >&2; exit 1`],
  ['behind a carriage return', `printf 'zone.db:3: bad name\\rconnect failed\\n' >&2; exit 1`],
  ['behind a line separator of Unicode', `printf 'bad \\342\\200\\250connect failed\\n' >&2; exit 1`],
  ['in the middle of the complaint', `echo 'unknown word "connect failed"' >&2; exit 1`],
];

describe('a policy that would talk its refusal away', () => {
  for (const [where, script] of talk)
    it(`is refused, with the words of nobody there ${where}`, async () => {
      using dir = tempDir();
      assert.equal((await verdictOf(dir, script, excuse)).kind, 'refused');
    });

  it('is what the first line guards against, and nothing that a program says of itself there', async () => {
    using dir = tempDir();
    const said = ['echo connect failed; exit 1', 'printf ".....\\nconnect failed\\n" >&2; echo; exit 1'];
    for (const script of said)
      assert.equal((await verdictOf(dir, script, excuse)).kind, 'unreachable', script);
  });
});

describe('a command that may reach nobody', () => {
  for (const [what, script, words, kind] of cases) {
    it(`takes ${what} for ${kind}`, async () => {
      using dir = tempDir();
      assert.equal((await verdictOf(dir, script, words)).kind, kind);
    });
  }

  it('believes no no of a command to a daemon that was dead before', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'unreachable', 'no pid file');
    writeFileSync(pidFile, `${deadPid}\n`);
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'unreachable', 'no process');
    assert.equal((await verdictOf(dir, 'exit 0', { pidFile })).kind, 'ok', 'a yes stays one');
    assert.equal((await verdictOf(dir, 'echo no; exit 1', { pidFile, reject: 'no' })).kind, 'refused');
  });

  it('believes the no of one that lived, also when it has died of it', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    writeFileSync(pidFile, `${process.pid}\n`);
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'refused');
    const dying = `echo ${deadPid} > ${pidFile}; exit 1`;
    assert.equal((await verdictOf(dir, dying, { pidFile })).kind, 'refused');
  });

  it('says nothing against a candidate, in no role', () => {
    const report = { verdict: { kind: 'unreachable', reason: 'exit 1' } as const };
    for (const role of ['canary', 'loader', 'probe'] as const)
      assert.equal(hookError(role, report, { text: (says) => says, facts: {} }), undefined);
  });
});
