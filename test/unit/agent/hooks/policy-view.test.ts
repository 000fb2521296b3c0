import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sandboxForCandidate } from '../../../../src/agent/hooks/hook.js';
import { type CandidateView, viewMounts } from '../../../../src/agent/hooks/policy-view.js';
import { createSandbox } from '../../../../src/agent/hooks/sandbox.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';

const old = { bundle: 'old', directory: '1-aaaaaaaaaaaa.6', source: '/p/bundles/old/1-aaaaaaaaaaaa.6' };
const fresh = { bundle: 'new', directory: '2-bbbbbbbbbbbb.7', source: '/s/staging/tree-new' };
const view: CandidateView = {
  kind: 'candidate',
  candidate: { generation: 7, trees: [old, fresh] },
  active: { generation: 6, trees: [old] },
};

describe('the view of a candidate', () => {
  it('has every tree once at its final path, both generations, and current at the candidate', () => {
    const mounts = viewMounts('/p', view).filter(({ kind }) => kind !== 'directory');
    assert.deepEqual(mounts, [
      { kind: 'empty', path: '/p' },
      { kind: 'read-only', from: old.source, to: '/p/bundles/old/1-aaaaaaaaaaaa.6' },
      { kind: 'read-only', from: fresh.source, to: '/p/bundles/new/2-bbbbbbbbbbbb.7' },
      { kind: 'link', path: '/p/generations/7/old', target: '../../bundles/old/1-aaaaaaaaaaaa.6' },
      { kind: 'link', path: '/p/generations/7/new', target: '../../bundles/new/2-bbbbbbbbbbbb.7' },
      { kind: 'link', path: '/p/generations/6/old', target: '../../bundles/old/1-aaaaaaaaaaaa.6' },
      { kind: 'link', path: '/p/current', target: 'generations/7' },
      { kind: 'sealed', path: '/p' },
    ]);
  });

  it('creates the parent directories of every mount, so that bubblewrap does not give them the mode of the mounted path', () => {
    const mounts = viewMounts('/p', view);
    for (const [index, mount] of mounts.entries()) {
      if (mount.kind !== 'read-only') continue;
      const before = mounts[index - 1];
      assert.ok(before?.kind === 'directory' && mount.to.startsWith(`${before.path}/`));
    }
  });

  it('is the active policy itself after the swap', () => {
    assert.deepEqual(viewMounts('/p', { kind: 'live' }), [{ kind: 'read-only', from: '/p', to: '/p' }]);
  });

  const confine = {
    sandbox: createSandbox({ mode: 'off', log: silentLog() }),
    paths: { state: '/s', policy: '/p', run: '/run/writ' },
    readers: [],
    view,
  };

  it('gives a command the paths inside the sandbox', () => {
    assert.deepEqual(sandboxForCandidate(confine, 'new').places, {
      generation: '/p/generations/7',
      candidate: '/p/generations/7',
      current: '/p/generations/6',
      bundle: '/p/bundles/new/2-bbbbbbbbbbbb.7',
    });
    assert.equal(sandboxForCandidate(confine, undefined).places?.bundle, undefined);
  });

  it('has an empty directory for {current} before the first activation', () => {
    const { active: _, ...first } = view;
    const { current } = sandboxForCandidate({ ...confine, view: first }, 'new').places ?? {};
    assert.ok(viewMounts('/p', first).some((one) => one.kind === 'directory' && one.path === current));
    assert.ok(
      !viewMounts('/p', first).some((one) => one.kind === 'link' && one.path.startsWith(`${current}/`)),
    );
  });
});
