import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findNamespaceHint, findSandboxError } from '../../../../src/agent/hooks/sandbox-rules.js';
import type { SandboxStatus } from '../../../../src/core/status/status.js';

const missing: SandboxStatus = {
  ...{ mode: 'auto', state: 'missing', reason: 'bwrap not found', withoutIt: 'unconfined' },
};

describe('findSandboxError', () => {
  const cases: readonly (readonly [string, SandboxStatus, number, boolean, string | undefined])[] = [
    ['worked before, under auto', missing, 2, true, 'SANDBOX_MISSING'],
    ['never worked, under auto', missing, 2, false, undefined],
    ['is needed by no command', missing, 0, true, undefined],
    ['is refused by the kernel', { ...missing, state: 'unusable' }, 1, true, 'SANDBOX_BROKEN'],
    ['works', { mode: 'required', state: 'on' }, 1, true, undefined],
    ['was not tried', { mode: 'required', state: 'unknown' }, 1, true, undefined],
    ['is off', { mode: 'off', state: 'off' }, 1, true, undefined],
  ];
  for (const [name, status, commands, hasWorked, code] of cases) {
    it(`returns ${code ?? 'undefined'} if the sandbox ${name}`, () => {
      assert.equal(findSandboxError(status, { commands, hasWorked })?.code, code);
    });
  }

  it('returns an error for a required sandbox, whether or not it worked before', () => {
    const required: SandboxStatus = { ...missing, mode: 'required', withoutIt: 'refused' };
    for (const hasWorked of [true, false])
      assert.equal(findSandboxError(required, { commands: 1, hasWorked })?.code, 'SANDBOX_MISSING');
  });

  it('names the effect on the commands', () => {
    const textOf = (status: SandboxStatus, commands: number) =>
      findSandboxError(status, { commands, hasWorked: true })?.message;
    assert.equal(
      textOf(missing, 2),
      'no command can be confined (bwrap not found): 2 commands run without a sandbox, which worked here before',
    );
    assert.equal(
      textOf({ ...missing, withoutIt: 'refused' }, 1),
      'no command can be confined (bwrap not found): 1 command does not run',
    );
  });

  it('has the hint of the status', () => {
    const error = findSandboxError({ ...missing, hint: 'a hint' }, { commands: 1, hasWorked: true });
    assert.equal(error?.hint, 'a hint');
  });
});

describe('findNamespaceHint', () => {
  const hint = (settings: Readonly<Record<string, string>>) => findNamespaceHint((path) => settings[path]);
  const cases = [
    ['kernel/apparmor_restrict_unprivileged_userns', '1\n', '0\n'],
    ['kernel/unprivileged_userns_clone', '0\n', '1\n'],
    ['user/max_user_namespaces', '0\n', '31000\n'],
  ] as const;
  for (const [path, forbids, permits] of cases) {
    it(`names the forbidding setting ${path}`, () => {
      assert.match(hint({ [path]: forbids }) ?? '', new RegExp(path.replace('/', '\\.')));
      assert.equal(hint({ [path]: permits }), undefined);
    });
  }

  it('returns undefined for a kernel without these settings', () => assert.equal(hint({}), undefined));
});
