import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  bundleLink,
  generationLink,
  hostPaths,
  parseBundleLink,
  parseGenerationLink,
  parseTreeName,
  treeDirectoryName,
} from '../../../../src/agent/state/paths.js';
import type { Digest } from '../../../../src/core/names.js';

const number = fc.integer({ min: 1, max: 999_999_999_999_999 });
const digest = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => `sha256:${Buffer.from(bytes).toString('hex')}` as Digest);
const bundle = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,63}$/);

describe('the names of trees and links', () => {
  it('are parsed to the serial, digest and generation that they were made from', () => {
    fc.assert(
      fc.property(bundle, number, digest, number, (name, serial, content, generation) => {
        const tree = treeDirectoryName(serial, content, generation);
        const digest12 = content.slice('sha256:'.length, 'sha256:'.length + 12);
        const expected = { serial, digest12, generation, release: `${serial}-${digest12}` };
        assert.deepEqual(parseTreeName(tree), expected);
        assert.deepEqual(parseBundleLink(name, bundleLink(name, tree)), expected);
        assert.equal(parseGenerationLink(generationLink(generation)), generation);
      }),
    );
  });

  it('are not parsed from a text that Writ does not make', () => {
    const digest12 = '0123456789ab';
    for (const text of [
      '',
      '1',
      `0-${digest12}.1`,
      `01-${digest12}.1`,
      `1-${digest12}`,
      `1-${digest12}.0`,
      `1-${digest12.toUpperCase()}.1`,
      `1-${digest12}.1/`,
      `1-${digest12}.1\n`,
      `12345678901234567-${digest12}.1`,
    ]) {
      assert.equal(parseTreeName(text), undefined, JSON.stringify(text));
    }
    for (const text of [
      'generations/',
      'generations/0',
      '/generations/1',
      'generations/1/',
      'generations/../1',
    ])
      assert.equal(parseGenerationLink(text), undefined, text);
    const other = bundleLink('dns-edge', `1-${digest12}.1`);
    assert.equal(parseBundleLink('access', other), undefined, 'a link into another bundle');
    assert.equal(parseBundleLink('access', `/etc/${digest12}`), undefined);
  });

  it('follow the configuration, also with the policy directory outside the state directory', () => {
    const paths = hostPaths({ state: '/s', policy: '/p', run: '/r', socket: '/x/agent.sock' });
    assert.deepEqual(
      [paths.lock, paths.staging, paths.current, paths.bundles, paths.status, paths.socket],
      ['/s/lock', '/s/staging', '/p/current', '/p/bundles', '/r/status.json', '/x/agent.sock'],
    );
  });
});
