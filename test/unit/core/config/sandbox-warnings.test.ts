import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigFile } from '../../../../src/core/config/config-schema.js';
import { sandboxWarnings } from '../../../../src/core/config/sandbox-warnings.js';
import type { HostFactSource } from '../../../../src/core/config/tolerated-rules.js';

const load = (run: readonly string[], more = {}, file = {}): ConfigFile =>
  ({
    repository: 'https://a/',
    bundles: [{ name: 'a' }],
    workers: [{ name: 'w', uses: ['a'], load: { run, ...more } }],
    ...file,
  }) as unknown as ConfigFile;

const textsOf = (file: ConfigFile, hostFacts?: HostFactSource): string[] =>
  [...sandboxWarnings(file, hostFacts)].map(({ path, text }) => `${path.join('.')}: ${text}`);

describe('a command that fails in its sandbox', () => {
  for (const program of [
    'nft',
    '/usr/sbin/nft',
    'iptables-restore',
    'ip6tables',
    'ip',
    'sysctl',
    'systemctl',
    'tc',
  ])
    it(`is ${program} in the default sandbox`, () => {
      const [text, ...others] = textsOf(load([program, 'x']));
      assert.match(text ?? '', /^workers\.0\.load\.run\.0: .*give it `sandbox: off`$/);
      assert.deepEqual(others, []);
    });

  for (const [what, file] of [
    ['with `sandbox: off`', load(['nft'], { sandbox: 'off' })],
    ['without a sandbox', load(['nft'], {}, { sandbox: 'off' })],
    ['in its own namespace', load(['unshare', '-Urn', 'nft', '-c'])],
    ['with another name', load(['nftlike'])],
    ['`ip` with the network of the host', load(['ip', 'route'], { network: true })],
    [
      '`systemctl` with the sockets of systemd',
      load(['systemctl', 'is-active'], { binds: ['/run/systemd'] }),
    ],
  ] as const)
    it(`is none ${what}`, () => assert.deepEqual(textsOf(file), []));

  it('is recommended for a loader when it is a check', () => {
    const file = load(
      ['true'],
      {},
      { bundles: [{ name: 'a', checks: [{ name: 'c', run: ['nft', '-c'] }] }] },
    );
    assert.match(textsOf(file)[0] ?? '', /^bundles\.0\.checks\.0\.run\.0: nft: .*it belongs into `load`/);
  });

  it('is a program that the sandbox hides, unless `binds` shows it', () => {
    assert.match(textsOf(load(['/home/anna/check']))[0] ?? '', /the sandbox hides it/);
    assert.match(textsOf(load(['/srv/writ/x'], {}, { state: '/srv/writ' }))[0] ?? '', /the sandbox hides it/);
    assert.deepEqual(textsOf(load(['/home/anna/check'], { binds: ['/home/anna'] })), []);
  });

  it('is a program that another user may not execute, unless it has a user of its own', () => {
    const hostFacts = {
      programForUnprivilegedUser: (name: string) => `closed: ${name}`,
    } as unknown as HostFactSource;
    assert.match(textsOf(load(['/opt/x']), hostFacts)[0] ?? '', /closed: \/opt\/x/);
    assert.deepEqual(textsOf(load(['/opt/x'], { user: 'app' }), hostFacts), []);
  });
});
