import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { hookError } from '../../../../src/agent/hooks/hook.js';
import { runHook } from '../../../../src/agent/hooks/run-hook.js';
import type { HookConfig } from '../../../../src/core/config/config.js';
import type { HookVerdict } from '../../../../src/core/cycle/hook-verdict.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

type HookRules = Pick<HookConfig, 'reject' | 'unreachable' | 'notNow' | 'pidFile'>;

async function verdictOf(dir: TempDir, script: string, rules: HookRules): Promise<HookVerdict> {
  const hook: HookConfig = { run: ['sh', '-c', script], timeoutMs: 60_000, ...rules };
  const { verdict } = await runHook({ hook, places: {}, scratchRoot: dir.path, durable: createDurableFs() });
  return verdict;
}

const noConnection = 'echo "rndc: connect failed: 127.0.0.1#953" >&2; exit 1';
/** Above the greatest pid of a kernel, so that no process has it. */
const deadPid = 4_194_305;

const preload =
  'echo "ERROR: ld.so: object \'/x.so\' from /etc/ld.so.preload cannot be preloaded: ignored." >&2; ';

const cases: readonly (readonly [
  what: string,
  script: string,
  rules: HookRules,
  kind: HookVerdict['kind'],
])[] = [
  ['a refusal without any rule', noConnection, {}, 'refused'],
  [
    'a refusal with the exit code of unreachable',
    noConnection,
    { unreachable: { exit: [1, 2] } },
    'unreachable',
  ],
  ['a refusal with another exit code', 'exit 3', { unreachable: { exit: [1, 2] } }, 'refused'],
  [
    'a refusal with the text of unreachable',
    noConnection,
    { unreachable: { match: 'connect failed' } },
    'unreachable',
  ],
  [
    'a refusal with another text',
    'echo bad zone; exit 1',
    { unreachable: { match: 'connect failed' } },
    'refused',
  ],
  [
    'the exit code without the text',
    'echo bad; exit 1',
    { unreachable: { exit: [1], match: '^connect' } },
    'refused',
  ],
  [
    'the text without the exit code',
    'echo connect; exit 2',
    { unreachable: { exit: [1], match: '^connect' } },
    'refused',
  ],
  ['both', 'echo connect; exit 1', { unreachable: { exit: [1], match: '^connect' } }, 'unreachable'],
  [
    'a refusal after a line of the dynamic loader',
    `${preload}${noConnection}`,
    { unreachable: { match: '^rndc' } },
    'unreachable',
  ],
  [
    'a success after such a line, with a pattern that would reject it',
    `${preload}exit 0`,
    { reject: 'ERROR' },
    'ok',
  ],
  [
    'a refusal after the line of a library of another distribution',
    `echo "rndc: /opt/lib/libx.so.4: no version information available (required by rndc)" >&2; ${noConnection}`,
    { unreachable: { match: '^rndc: connect failed' } },
    'unreachable',
  ],
  [
    'a refusal of the program that ends similarly',
    'echo "bad: zone: no version information available (required by SOA) in line 3" >&2; exit 1',
    { unreachable: { match: '^rndc' } },
    'refused',
  ],
  ['a similar line of the program', 'echo "ERROR: line 3" >&2', { reject: 'ERROR' }, 'refused'],
  ['an exit code of "not now"', 'exit 9', { notNow: { exit: [9] } }, 'deferred'],
  ['a text of "not now"', 'echo busy; exit 1', { notNow: { match: '^busy' } }, 'deferred'],
  [
    'a text of "not now" in a later line',
    'echo bad; echo busy; exit 1',
    { notNow: { match: '^busy' } },
    'refused',
  ],
  ['"not now" that is rejected too', 'echo busy; exit 75', { reject: 'busy' }, 'refused'],
  [
    '"not now" and unreachable',
    'exit 1',
    { notNow: { exit: [1] }, unreachable: { exit: [1] } },
    'unreachable',
  ],
  ['a success with a text of "not now"', 'echo busy', { notNow: { match: 'busy' } }, 'ok'],
  [
    'a refusal that is unreachable and rejected',
    noConnection,
    { unreachable: { exit: [1] }, reject: 'connect' },
    'refused',
  ],
  [
    'a success with the text of unreachable',
    'echo connect failed',
    { unreachable: { match: 'connect failed' } },
    'ok',
  ],
  [
    '"not now" with the text of unreachable',
    'echo connect failed; exit 75',
    { unreachable: { match: 'connect' } },
    'deferred',
  ],
  ['a killed program', 'kill -9 $$', { unreachable: { match: '' } }, 'broken'],
  ['a pattern that never ends', `printf '%040d!' 0; exit 1`, { unreachable: { match: '(0+)+$' } }, 'refused'],
];

/** A policy can put this text into the output of a program that reads it, so that its refusal is excused. */
const excuse = { unreachable: { match: '^(rndc: )?connect failed' } };
const imitations: readonly (readonly [where: string, script: string])[] = [
  ['in a later line', `echo 'zone.db:3: syntax error' >&2; echo 'connect failed' >&2; exit 1`],
  ['on stdout, before the complaint', `echo 'connect failed'; echo 'zone.db:3: syntax error' >&2; exit 1`],
  ['behind a carriage return', `printf 'zone.db:3: bad name\\rconnect failed\\n' >&2; exit 1`],
  ['behind a line separator of Unicode', `printf 'bad \\342\\200\\250connect failed\\n' >&2; exit 1`],
  ['in the middle of the complaint', `echo 'unknown word "connect failed"' >&2; exit 1`],
];

describe('a policy that imitates the text of unreachable', () => {
  for (const [where, script] of imitations)
    it(`is refused, with the text ${where}`, async () => {
      using dir = tempDir();
      assert.equal((await verdictOf(dir, script, excuse)).kind, 'refused');
    });

  it('counts only in the first line, which the program itself writes', async () => {
    using dir = tempDir();
    const outputs = ['echo connect failed; exit 1', 'printf ".....\\nconnect failed\\n" >&2; echo; exit 1'];
    for (const script of outputs)
      assert.equal((await verdictOf(dir, script, excuse)).kind, 'unreachable', script);
  });
});

describe('a command with rules for its answer', () => {
  for (const [what, script, rules, kind] of cases) {
    it(`has the verdict ${kind} for ${what}`, async () => {
      using dir = tempDir();
      assert.equal((await verdictOf(dir, script, rules)).kind, kind);
    });
  }

  it('ignores a refusal if the daemon was dead before the command', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'unreachable', 'no pid file');
    writeFileSync(pidFile, `${deadPid}\n`);
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'unreachable', 'no process');
    assert.equal((await verdictOf(dir, 'exit 0', { pidFile })).kind, 'ok', 'a yes stays one');
    assert.equal((await verdictOf(dir, 'echo no; exit 1', { pidFile, reject: 'no' })).kind, 'refused');
  });

  it('accepts a refusal if the daemon was alive before, also if the command killed it', async () => {
    using dir = tempDir();
    const pidFile = dir.join('pid');
    writeFileSync(pidFile, `${process.pid}\n`);
    assert.equal((await verdictOf(dir, 'exit 1', { pidFile })).kind, 'refused');
    const dying = `echo ${deadPid} > ${pidFile}; exit 1`;
    assert.equal((await verdictOf(dir, dying, { pidFile })).kind, 'refused');
  });

  it('makes no error of `unreachable` in any role', () => {
    const report = { verdict: { kind: 'unreachable', reason: 'exit 1' } as const };
    for (const role of ['canary', 'loader', 'probe'] as const)
      assert.equal(hookError(role, report, { text: (verdict) => verdict, facts: {} }), undefined);
  });
});
