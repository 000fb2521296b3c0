import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boxOf } from '../../../../src/agent/hooks/confine.js';
import type { SandboxCapabilities } from '../../../../src/agent/state/host.js';
import { defaultHookSandbox } from '../../../../src/core/config/hook-sandbox.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';

const means: SandboxCapabilities = {
  programs: { bwrap: '/b/bwrap', prlimit: '/b/prlimit', setpriv: '/b/setpriv' },
  userNamespace: 'yes',
  isRoot: true,
  limits: { maxDataBytes: 1e9, maxProcesses: 100 },
};

describe('a command in the sandbox', () => {
  // By its number: a second account of root has another name, and the configuration knows one only.
  it('is never root, under whatever name', () => {
    for (const user of ['root', 0]) {
      const asked = { ...defaultHookSandbox, user };
      throwsCode('SANDBOX_BROKEN', () => boxOf(means, asked, { mounts: [], directory: '/' }));
    }
  });

  it('is nobody but the user of an agent that is not root', () => {
    const others = (process.getuid?.() ?? 0) + 1;
    const asked = { ...defaultHookSandbox, user: others };
    throwsCode('SANDBOX_BROKEN', () =>
      boxOf({ ...means, isRoot: false }, asked, { mounts: [], directory: '/' }),
    );
  });

  it('may create user namespaces only where its configuration permits it', () => {
    const filters = { confined: Buffer.from('confined'), nested: Buffer.from('nested') };
    const filterOf = (more: object): unknown =>
      boxOf(
        { ...means, systemCalls: filters },
        { ...defaultHookSandbox, ...more },
        { mounts: [], directory: '/' },
      ).systemCalls;
    assert.equal(filterOf({}), filters.confined);
    assert.equal(filterOf({ userNamespace: 'no' }), filters.confined);
    assert.equal(filterOf({ canNestNamespaces: true }), filters.nested);
  });

  it('leaves the user namespace under an agent of root only', () => {
    const asked = { ...defaultHookSandbox, userNamespace: 'no' } as const;
    throwsCode('SANDBOX_BROKEN', () =>
      boxOf({ ...means, isRoot: false }, asked, { mounts: [], directory: '/' }),
    );
  });
});
