import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findChangeExemption } from '../../../../src/agent/checks/change-exemption-rules.js';
import type { NewRelease } from '../../../../src/core/release/release.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

function release(serial: number, withdrawn: readonly number[] = [], content = `${serial}`) {
  const { digest } = manifestFile({ path: 'a', content });
  return { bundle: 'access', serial, manifest: { digest, length: 100 }, withdrawn };
}

function find(active: number | undefined, offered: ReturnType<typeof release>, settled: NewRelease[] = []) {
  return findChangeExemption({
    active: active === undefined ? undefined : { serial: active },
    offered,
    settled,
  });
}

describe('findChangeExemption', () => {
  it('exempts a first release', () => {
    assert.equal(find(undefined, release(7)), 'first release');
  });

  it('exempts the older release that replaces a withdrawn one', () => {
    assert.equal(find(3, release(1, [2, 3])), 'withdrawal');
  });

  it('compares a newer release that withdraws the active one, because its tree is new to the host', () => {
    assert.equal(find(3, release(4, [3])), undefined);
  });

  it('compares a lower serial that withdraws only other releases, as after a change of the channel', () => {
    assert.equal(find(3, release(2, [1])), undefined);
    assert.equal(find(3, release(2)), undefined);
  });

  it('exempts a release that settled before, by bundle, serial and content', () => {
    const settled = [release(1), release(2)];
    assert.equal(find(3, release(2), settled), 'settled before');
    assert.equal(find(3, release(4), settled), undefined);
    assert.equal(find(3, release(2, [], 'other'), settled), undefined);
    assert.equal(find(3, { ...release(2), bundle: 'limits' }, settled), undefined);
  });
});
