import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { minimal, parse } from './parsed-text.js';

const fleetOf = (keys: string) => parse(`${minimal}\nfleet: { ${keys} }`);
const wrongAt = (keys: string): string[] => {
  const parsed = fleetOf(keys);
  return parsed.ok ? [] : parsed.mistakes.map(mistakeLine);
};

describe('the fleet of a configuration', () => {
  it('has a URL, a token file, an interval of five minutes and the detail `codes`', () => {
    const parsed = fleetOf('url: https://fleet.example.net/, tokenFile: /etc/writ/token');
    assert.ok(parsed.ok);
    assert.deepEqual(parsed.config.fleet, {
      ...{
        url: 'https://fleet.example.net/',
        tokenFile: '/etc/writ/token',
        everyMs: 300_000,
        detail: 'codes',
        stay: 'lasting',
        claim: 'new',
      },
    });
  });

  it('marks a host as ephemeral or as a replacement when the file sets it', () => {
    const parsed = fleetOf('url: https://fleet/, tokenFile: /t, ephemeral: true, replaces: true');
    assert.ok(parsed.ok);
    assert.deepEqual([parsed.config.fleet?.stay, parsed.config.fleet?.claim], ['ephemeral', 'replaces']);
    assert.notDeepEqual(wrongAt('url: https://fleet/, tokenFile: /t, ephemeral: often'), []);
  });

  it('requires https, or http to a loopback address', () => {
    const at = (url: string) => wrongAt(`url: "${url}", tokenFile: /t`);
    for (const url of ['http://127.0.0.1:8600/', 'http://[::1]:8600', 'http://localhost/', 'https://fleet/'])
      assert.deepEqual(at(url), [], url);
    for (const url of [
      ...['http://fleet/', 'http://127.0.0.1.example.net/', 'http://10.0.0.1/', 'http://localhost.example/'],
      ...['file:///fleet', 'ftp://fleet/', 'fleet', 'https://user:word@fleet/', 'https://fleet/?a=b'],
    ])
      assert.notDeepEqual(at(url), [], url);
  });

  it('bounds its keys, and requires `tokenFile`', () => {
    const common = 'url: https://fleet/, tokenFile: /t';
    for (const [keys, isGood] of [
      ['every: 5s', true],
      ['every: 1h', true],
      ['every: 4999ms', false],
      ['every: 61m', false],
      ['detail: line', true],
      ['detail: all', false],
      ['ca: /etc/ca.pem', true],
      ['ca: ca.pem', false],
    ] as const)
      assert.equal(wrongAt(`${common}, ${keys}`).length === 0, isGood, keys);
    assert.notDeepEqual(wrongAt('url: https://fleet/'), []);
    assert.notDeepEqual(wrongAt('url: "http://127.0.0.1/", tokenFile: /t, ca: /etc/ca.pem'), []);
  });
});
