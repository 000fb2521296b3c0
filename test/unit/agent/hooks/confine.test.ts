import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boxOf } from '../../../../src/agent/hooks/confine.js';
import type { SandboxCapabilities } from '../../../../src/agent/state/host.js';
import { defaultHookSandbox } from '../../../../src/core/config/hook-sandbox.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';

const capabilities: SandboxCapabilities = {
  programs: { bwrap: '/b/bwrap', prlimit: '/b/prlimit', setpriv: '/b/setpriv' },
  userNamespace: 'yes',
  isRoot: true,
  limits: { maxDataBytes: 1e9, maxProcesses: 100 },
};

describe('boxOf', () => {
  // The user id counts, because a second account of root has another name.
  it('refuses root, by any name of its user id', () => {
    for (const user of ['root', 0]) {
      const asked = { ...defaultHookSandbox, user };
      throwsCode('SANDBOX_BROKEN', () => boxOf(capabilities, asked, { mounts: [], directory: '/' }));
    }
  });

  it('refuses another user than that of an agent that is not root', () => {
    const others = (process.getuid?.() ?? 0) + 1;
    const asked = { ...defaultHookSandbox, user: others };
    throwsCode('SANDBOX_BROKEN', () =>
      boxOf({ ...capabilities, isRoot: false }, asked, { mounts: [], directory: '/' }),
    );
  });

  it('permits user namespaces only if the configuration does', () => {
    const filters = { confined: Buffer.from('confined'), nested: Buffer.from('nested') };
    const filterOf = (more: object): unknown =>
      boxOf(
        { ...capabilities, systemCalls: filters },
        { ...defaultHookSandbox, ...more },
        { mounts: [], directory: '/' },
      ).systemCalls;
    assert.equal(filterOf({}), filters.confined);
    assert.equal(filterOf({ userNamespace: 'no' }), filters.confined);
    assert.equal(filterOf({ canNestNamespaces: true }), filters.nested);
  });

  it('omits the user namespace only for an agent of root', () => {
    const asked = { ...defaultHookSandbox, userNamespace: 'no' } as const;
    throwsCode('SANDBOX_BROKEN', () =>
      boxOf({ ...capabilities, isRoot: false }, asked, { mounts: [], directory: '/' }),
    );
  });
});
