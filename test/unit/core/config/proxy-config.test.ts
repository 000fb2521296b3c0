import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { minimal, parse } from './parsed-text.js';

const proxyOf = (value: string) => parse(`${minimal}\nproxy: ${value}`);
const wrongAt = (value: string): string[] => {
  const parsed = proxyOf(value);
  return parsed.ok ? [] : parsed.mistakes.map(mistakeLine);
};

describe('the proxy of a configuration', () => {
  it('is a URL, a group, none, or left to the environment', () => {
    const of = (value: string) => {
      const parsed = proxyOf(value);
      assert.ok(parsed.ok, value);
      return parsed.config.proxy;
    };
    const url = 'http://proxy.test:3128';
    assert.deepEqual(of(url), { url });
    assert.equal(of('none'), 'none');
    const group = {
      url: 'https://proxy.test/',
      credentialsFile: '/c',
      ca: '/a',
      noProxy: ['.test', '10.0.0.0/8'],
    };
    assert.deepEqual(of(JSON.stringify(group)), group);
    const parsed = parse(minimal);
    assert.ok(parsed.ok && parsed.config.proxy === undefined);
  });

  it('must not contain a user or password, and the message names the file for them without the URL', () => {
    for (const value of ['http://user:secret@proxy.test', '{ url: "https://secret@proxy.test" }']) {
      const [line = ''] = wrongAt(value);
      assert.match(line, /must not have a user or password: .*`proxy\.credentialsFile`/);
      assert.doesNotMatch(line, /secret/);
    }
  });

  for (const [what, value] of [
    ['another scheme', 'socks5://proxy.test'],
    ['no scheme', 'proxy.test'],
    ['a path', 'http://proxy.test/a'],
    ['a query', 'http://proxy.test/?a'],
    ['authorities without https', '{ url: "http://proxy.test", ca: /a }'],
    ['no URL', '{ noProxy: [] }'],
    ['an exception that matches nothing', '{ url: "http://proxy.test", noProxy: ["http://a.test"] }'],
  ] as const)
    it(`is refused with ${what}`, () => assert.notDeepEqual(wrongAt(value), []));
});
