import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  judgeSandbox,
  type SandboxFacts,
  sandboxChecks,
} from '../../../../src/agent/doctor/check-sandbox.js';
import type { DoctorContext } from '../../../../src/agent/doctor/doctor-context.js';

describe('the sandbox', () => {
  const on = {
    state: 'on',
    user: 'nobody',
    userNamespace: 'yes',
    memory: 'each-process',
    processes: 'each-command',
  } as const;
  const missing = { state: 'missing', reason: 'bwrap not found' } as const;
  const unusable = { state: 'unusable', reason: 'No permissions to create a new namespace' } as const;
  const cases: readonly (readonly [string, SandboxFacts, string])[] = [
    ['that works', { mode: 'required', commands: 2, seen: on }, 'ok'],
    ['that is missing and required', { mode: 'required', commands: 2, seen: missing }, 'FAIL'],
    ['that is missing where it is only wished', { mode: 'auto', commands: 2, seen: missing }, 'warn'],
    ['that is missing and that nothing needs', { mode: 'required', commands: 0, seen: missing }, 'skip'],
    ['that the kernel forbids', { mode: 'required', commands: 1, seen: unusable }, 'FAIL'],
    ['that is off', { mode: 'off', commands: 1 }, 'warn'],
    ['that is off without commands', { mode: 'off', commands: 0 }, 'ok'],
  ];
  for (const [what, facts, state] of cases) {
    it(`${what}: ${state}`, () => assert.equal(judgeSandbox(facts).state, state));
  }

  it('names the missing program and the command that installs it', () => {
    const { text, next } = judgeSandbox({ mode: 'required', commands: 1, seen: missing });
    assert.equal(text, 'bwrap not found: 1 command that cannot run');
    assert.match(next ?? '', /^apt-get install bubblewrap/);
  });

  it('warns if vsock and io_uring are open to a command, but not without commands', () => {
    const open = { ...on, systemCalls: 'open' } as const;
    const { state, text, next } = judgeSandbox({ mode: 'required', commands: 1, seen: open });
    assert.deepEqual([state, next], ['warn', 'see docs/sandbox.md']);
    assert.match(text, /vsock and io_uring are open$/);
    assert.equal(judgeSandbox({ mode: 'required', commands: 0, seen: open }).state, 'ok');
  });

  it('notes that shared memory is unbounded if the agent has no control groups', () => {
    const facts = { mode: 'auto', commands: 1, seen: on } as const;
    assert.match(
      judgeSandbox({ ...facts, memory: 'each-process' }).text,
      /does not bound shared memory \(memfd\)$/,
    );
    assert.doesNotMatch(judgeSandbox({ ...facts, memory: 'each-command' }).text, /memfd/);
  });

  it('names the user and the user namespace of the test command', () => {
    const { text } = judgeSandbox({ mode: 'auto', commands: 1, seen: on });
    assert.equal(text, `a test command was confined as ${on.user}, user namespace: yes`);
  });

  it('reports the test of the agent, whatever this user may do', async () => {
    const reason = 'No permissions to create a new namespace';
    const sandbox = { mode: 'required', state: 'unusable', reason } as const;
    const config = { sandbox: 'required', bundles: [{ checks: [{ kind: 'run' }] }], workers: [] };
    for (const kind of ['agent', 'file'] as const) {
      const context = { config, hostStatus: { kind, report: { sandbox }, ageMs: 1 } };
      const [[, examine] = []] = sandboxChecks(context as unknown as DoctorContext);
      const found = await examine?.();
      assert.match(JSON.stringify(found), /No permissions to create a new namespace, tested by the agent/);
    }
    const seen = { state: 'on', user: 'agent', userNamespace: 'yes' } as const;
    const { text } = judgeSandbox({ mode: 'auto', commands: 1, seen, by: 'agent' });
    assert.match(text, /^a test command was confined as the user of the agent, .+, tested by the agent$/);
  });
});
