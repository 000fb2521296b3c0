import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';

const plain = (text: string): unknown => JSON.parse(JSON.stringify(parseHostFilter(text)));

describe('a filter of hosts', () => {
  it('reads several conditions, and accepts rejected as a synonym of refused', () => {
    assert.deepEqual(plain('state=rejected,bundle=dns-edge,label.site=fra'), {
      bundle: { offered: 'refused', bundle: 'dns-edge' },
      labels: { site: 'fra' },
    });
  });

  it('distinguishes states of a bundle from states of a host', () => {
    assert.deepEqual(plain('state=confirmed,serial=42'), {
      bundle: { active: 'confirmed', serial: 42 },
      labels: {},
    });
    assert.deepEqual(plain('state=silent'), { bundle: {}, labels: {}, is: 'silent' });
    assert.deepEqual(plain(''), { bundle: {}, labels: {} });
  });

  it('accepts the standing of a release, and no other value', () => {
    assert.deepEqual(plain('standing=behind,bundle=dns'), {
      bundle: { standing: 'behind', bundle: 'dns' },
      labels: {},
    });
    throwsCode('USAGE', () => parseHostFilter('standing=late'));
  });

  it('reads commas, backslashes and equals signs in a value', () => {
    assert.deepEqual(plain('label.a=x\\,y\\\\z=1,host=😀'), {
      bundle: {},
      labels: { a: 'x,y\\z=1' },
      host: '😀',
    });
  });

  it('reads a label of any name, also that of a member of each object', () => {
    const { labels } = parseHostFilter('label.__proto__=x,label.constructor=y');
    assert.deepEqual(Object.entries(labels), [
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
  });

  it('rejects an unknown key or value, with a hint', () => {
    for (const text of [
      'bogus=1',
      'constructor=1',
      'state=fine',
      'serial=x',
      'bundle',
      '=x',
      'bundle=',
      'label.=x',
      ',',
    ])
      assert.notEqual(throwsCode('USAGE', () => parseHostFilter(text)).hint, '');
    throwsCode('USAGE', () => parseHostFilter('host=a,host=b'));
  });

  it('is bounded in length, conditions and values', () => {
    const many = (count: number): string =>
      Array.from({ length: count }, (_, at) => `label.n${at}=x`).join(',');
    assert.equal(Object.keys(parseHostFilter(many(16)).labels).length, 16);
    throwsCode('USAGE', () => parseHostFilter(many(17)));
    parseHostFilter(`host=${'x'.repeat(255)}`);
    throwsCode('USAGE', () => parseHostFilter(`host=${'x'.repeat(256)}`));
    throwsCode('USAGE', () => parseHostFilter(`host=${'x'.repeat(2000)}`));
  });
});
