// Which proxy a URL is fetched through: the table of the variables, of NO_PROXY, and of the key.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Environment,
  proxyUses,
  readProxyUrl,
  routeTo,
  whyNoException,
} from '../../../src/core/proxy-rules.js';

const proxy = 'http://proxy.test:3128';

/** @returns the proxy and its source, or why there is none */
function shown(target: string, env: Environment, setting?: Parameters<typeof routeTo>[1]): string {
  const route = routeTo(new URL(target), setting, env);
  if (route.kind === 'proxy') return `${route.url.origin} ${route.from}`;
  return route.kind === 'direct' ? `direct ${route.because ?? ''}`.trim() : `${route.from} ${route.why}`;
}

describe('the proxy of the environment', () => {
  const cases: readonly (readonly [target: string, env: Environment, expected: string])[] = [
    ['https://a.test/', {}, 'direct'],
    ['https://a.test/', { HTTPS_PROXY: proxy }, `${proxy} HTTPS_PROXY`],
    ['https://a.test/', { HTTPS_PROXY: '', https_proxy: '  ' }, 'direct'],
    ['https://a.test/', { HTTPS_PROXY: 'http://other.test', https_proxy: proxy }, `${proxy} https_proxy`],
    ['https://a.test/', { HTTP_PROXY: proxy, http_proxy: proxy }, 'direct'],
    ['http://a.test/', { HTTPS_PROXY: proxy }, 'direct'],
    ['http://a.test/', { HTTP_PROXY: proxy }, `${proxy} HTTP_PROXY`],
    ['http://a.test/', { HTTP_PROXY: proxy, REQUEST_METHOD: 'GET' }, 'direct'],
    ['http://a.test/', { http_proxy: proxy, REQUEST_METHOD: 'GET' }, `${proxy} http_proxy`],
    ['http://a.test/', { http_proxy: 'proxy.test:3128' }, `${proxy} http_proxy`],
    ['https://a.test/', { https_proxy: 'https://proxy.test' }, 'https://proxy.test https_proxy'],
    ['file:///a', { HTTPS_PROXY: proxy, HTTP_PROXY: proxy }, 'direct'],
    ['http://localhost:80/', { http_proxy: proxy }, 'direct loopback'],
    ['http://a.localhost/', { http_proxy: proxy }, 'direct loopback'],
    ['https://localhost./', { https_proxy: proxy }, 'direct loopback'],
    ['https://127.8.9.1/', { https_proxy: proxy }, 'direct loopback'],
    ['https://127.1/', { https_proxy: proxy }, 'direct loopback'],
    ['https://[::1]:8443/', { https_proxy: proxy }, 'direct loopback'],
    ['https://[::ffff:127.0.0.1]/', { https_proxy: proxy }, 'direct loopback'],
    ['https://localhost.test/', { https_proxy: proxy }, `${proxy} https_proxy`],
    ['https://128.0.0.1/', { https_proxy: proxy }, `${proxy} https_proxy`],
  ];
  for (const [target, env, expected] of cases)
    it(`for ${target} with ${JSON.stringify(env)} is ${expected}`, () =>
      assert.equal(shown(target, env), expected));

  it('is an error, and not a direct connection, if its URL cannot be used', () => {
    assert.match(
      shown('https://a.test/', { HTTPS_PROXY: 'socks5://p.test' }),
      /^HTTPS_PROXY begins with socks5:/,
    );
    assert.match(shown('https://a.test/', { HTTPS_PROXY: 'http://' }), /^HTTPS_PROXY is not a URL/);
  });

  it('has credentials apart from its URL', () => {
    const route = routeTo(new URL('https://a.test/'), undefined, {
      HTTPS_PROXY: 'http://u:p%40ss@proxy.test:3128/x',
    });
    assert.ok(route.kind === 'proxy');
    assert.deepEqual([route.url.href, route.credentials], [`${proxy}/`, 'u:p@ss']);
    assert.deepEqual(readProxyUrl('http://u:100%@p.test'), {
      ...{ kind: 'read', url: new URL('http://p.test'), credentials: 'u:100%' },
    });
  });
});

describe('an entry of NO_PROXY', () => {
  const cases: readonly (readonly [entry: string, target: string, isDirect: boolean])[] = [
    ['*', 'https://a.test/', true],
    ['a.test', 'https://a.test/', true],
    ['A.Test', 'https://a.test/', true],
    ['a.test', 'https://b.a.test/', true],
    ['a.test', 'https://ba.test/', false],
    ['.a.test', 'https://b.a.test/', true],
    ['.a.test', 'https://a.test/', false],
    ['*.a.test', 'https://b.a.test/', true],
    ['*.a.test', 'https://a.test/', false],
    ['a.test:443', 'https://a.test/', true],
    ['a.test:443', 'https://a.test:8443/', false],
    ['a.test:80', 'http://a.test/', true],
    ['.a.test:8443', 'https://b.a.test:8443/', true],
    ['a.test.', 'https://a.test/', true],
    ['a.test', 'https://a.test./', true],
    ['10.1.2.3', 'https://10.1.2.3/', true],
    ['10.1.2.3', 'https://10.1.2.4/', false],
    ['10.1.2.3:443', 'https://10.1.2.3/', true],
    ['10.1.2.3:80', 'https://10.1.2.3/', false],
    ['2.3', 'https://10.1.2.3/', false],
    ['10.0.0.0/8', 'https://10.1.2.3/', true],
    ['10.0.0.0/8', 'https://11.1.2.3/', false],
    ['10.1.2.128/25', 'https://10.1.2.127/', false],
    ['0.0.0.0/0', 'https://203.0.113.1/', true],
    ['0.0.0.0/0', 'https://[2001:db8::1]/', false],
    ['10.0.0.0/33', 'https://10.0.0.0/', false],
    ['10.0.0.0/8', 'https://a.test/', false],
    ['2001:db8::/32', 'https://[2001:db8:1::1]/', true],
    ['2001:db8::/32', 'https://[2001:db9::1]/', false],
    ['2001:DB8:0::1', 'https://[2001:db8::1]/', true],
    ['[2001:db8::1]', 'https://[2001:db8::1]/', true],
    ['[2001:db8::1]:443', 'https://[2001:db8::1]/', true],
    ['[2001:db8::1]:444', 'https://[2001:db8::1]/', false],
    ['10.0.0.0/8', 'https://[::ffff:10.0.0.1]/', true],
    ['256.0.0.1', 'https://a.test/', false],
  ];
  for (const [entry, target, isDirect] of cases)
    it(`${entry} ${isDirect ? 'covers' : 'does not cover'} ${target}`, () => {
      const env = { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, NO_PROXY: `other.example, ${entry}` };
      assert.equal(shown(target, env).startsWith('direct NO_PROXY'), isDirect);
    });

  it('is separated by commas or spaces, and the lower-case list has precedence', () => {
    const env = { HTTPS_PROXY: proxy, NO_PROXY: 'b.test', no_proxy: 'c.test,,  a.test' };
    assert.equal(shown('https://a.test/', env), 'direct no_proxy');
    assert.equal(shown('https://b.test/', env), `${proxy} HTTPS_PROXY`);
  });

  it('is rejected if it can never match', () => {
    for (const entry of [
      '*',
      'a.test',
      '.a.test',
      '*.a.test',
      'a:80',
      '10.0.0.0/8',
      '::1',
      '[::1]:80',
      '2001:db8::/32',
    ])
      assert.equal(whyNoException(entry), undefined, entry);
    for (const entry of ['', 'http://a.test', '10.0.0.0/40', 'a b', '*a.test', '::/129', ':80'])
      assert.notEqual(whyNoException(entry), undefined, entry);
  });
});

describe('the key `proxy`', () => {
  const env = { HTTPS_PROXY: 'http://of-environment.test', NO_PROXY: '*' };

  it('replaces the environment, with its exceptions', () => {
    assert.equal(shown('https://a.test/', env, { url: proxy }), `${proxy} proxy`);
    assert.equal(shown('https://a.test/', env, { url: proxy, noProxy: ['.test'] }), 'direct proxy.noProxy');
    assert.equal(shown('https://127.0.0.1/', env, { url: proxy }), 'direct loopback');
    assert.equal(shown('https://a.test/', { HTTPS_PROXY: proxy }, 'none'), 'direct proxy: none');
  });
});

describe('the uses of a host', () => {
  it('name the source for each URL, and no credentials', () => {
    const servers = {
      repository: [{ url: 'https://a.test/' }, { url: 'https://b.test/' }, { url: 'file:///c/' }],
      fleet: { url: 'https://127.0.0.1/' },
    };
    const env = { HTTPS_PROXY: 'http://user:secret@proxy.test:3128', NO_PROXY: 'b.test' };
    assert.deepEqual(proxyUses(servers, env), [
      { url: 'https://a.test/', proxy, from: 'HTTPS_PROXY' },
      { url: 'https://b.test/', from: 'NO_PROXY' },
      { url: 'https://127.0.0.1/', from: 'loopback' },
    ]);
    assert.deepEqual(proxyUses(servers, {}), []);
    const [unusable] = proxyUses(servers, { HTTPS_PROXY: 'socks5://user:secret@p.test' });
    assert.doesNotMatch(JSON.stringify(unusable), /secret/);
  });
});
