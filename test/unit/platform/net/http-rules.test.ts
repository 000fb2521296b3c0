import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeRedirect, type RedirectRules } from '../../../../src/platform/net/http-rules.js';

const allowed = ['cdn.example.net', 'cdn.example.net:8443', '[2001:db8::1]'];

function where(from: string, location: string | undefined, rules: Partial<RedirectRules> = {}): string {
  const verdict = judgeRedirect(from, location, { hops: 0, allowed, ...rules });
  return verdict.kind === 'follow' ? verdict.url : 'refused';
}

const base = 'https://policy.example.net/repo/metadata/timestamp.json';

describe('a redirect', () => {
  for (const [location, expected] of [
    ['/v2/timestamp.json', 'https://policy.example.net/v2/timestamp.json'],
    ['../v2/a.json?sig=1#top', 'https://policy.example.net/repo/v2/a.json?sig=1'],
    ['https://policy.example.net:443/a', 'https://policy.example.net/a'],
    ['https://cdn.example.net/a', 'https://cdn.example.net/a'],
    ['https://CDN.example.net:443/a', 'https://cdn.example.net/a'],
    ['https://cdn.example.net:8443/a', 'https://cdn.example.net:8443/a'],
    ['//cdn.example.net/a', 'https://cdn.example.net/a'],
    ['https://[2001:db8::1]/a', 'https://[2001:db8::1]/a'],
  ] as const) {
    it(`to ${location} is followed`, () => assert.equal(where(base, location), expected));
  }

  for (const location of [
    'http://policy.example.net/a',
    'http://cdn.example.net/a',
    'https://policy.example.net:444/a',
    'https://cdn.example.net:444/a',
    'https://cdn.example.net.evil.example/a',
    'https://evil-cdn.example.net/a',
    'https://cdn.example.net@evil.example/a',
    'https://user:secret@policy.example.net/a',
    'https://127.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'file:///etc/passwd',
    'ftp://cdn.example.net/',
    'data:text/plain,x',
    'https://',
    `/${'x'.repeat(4001)}`,
    undefined,
  ]) {
    it(`to ${location?.slice(0, 60)} is refused`, () => assert.equal(where(base, location), 'refused'));
  }

  it('from plain http goes on at the same place, or to https where configured, and nowhere else', () => {
    const plain = 'http://policy.example.net/a';
    assert.equal(where(plain, '/b'), 'http://policy.example.net/b');
    assert.equal(where(plain, 'https://cdn.example.net/b'), 'https://cdn.example.net/b');
    assert.equal(where(plain, 'https://policy.example.net/b'), 'refused');
    assert.equal(where(plain, 'http://policy.example.net:8080/b'), 'refused');
    assert.equal(where(plain, 'http://cdn.example.net/b'), 'refused');
    assert.equal(where('https://cdn.example.net/a', plain), 'refused');
  });

  it('is followed five times', () => {
    assert.equal(where(base, '/b', { hops: 4 }), 'https://policy.example.net/b');
    assert.equal(where(base, '/b', { hops: 5 }), 'refused');
  });
});
