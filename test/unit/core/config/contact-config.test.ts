// `bake.contact`: which server must be reached after a swap, and configurations in which none can be lost.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bakeOf } from '../../../../src/core/config/config.js';
import { parse } from './parsed-text.js';

function parseBakes(bakes: readonly string[], more = '', repository = 'https://policy.example.net/') {
  const bundles = bakes.map((bake, index) => `{ name: b${index}, bake: ${bake} }`);
  return parse(`repository: ${repository}\nbundles: [${bundles.join(', ')}]\n${more}`);
}

function mistakesOf(...args: Parameters<typeof parseBakes>): string[] {
  const parsed = parseBakes(...args);
  return parsed.ok ? [] : parsed.mistakes.map(({ code, pointer }) => `${code} ${pointer}`);
}

const fleet = 'fleet: { url: https://fleet.example.net/, tokenFile: /etc/writ/token }';
const refused = ['CONFIG_INVALID /bundles/0/bake/contact'];

describe('the server that a release must reach', () => {
  it('is none unless a bundle names one', () => {
    for (const bake of ['{ for: 5m }', '{ contact: none }']) {
      const parsed = parseBakes([bake]);
      assert.equal(parsed.ok && bakeOf(parsed.config, 'b0').contact, undefined);
    }
  });

  it('applies to each member of a set', () => {
    const parsed = parseBakes(['{ contact: repository }', '{ for: 5m }'], 'together: [[b0, b1]]');
    assert.equal(parsed.ok && bakeOf(parsed.config, 'b1').contact, 'repository');
  });

  it('is refused when every source of the repository is a file', () => {
    assert.deepEqual(mistakesOf(['{ contact: repository }'], '', 'file:///media/usb'), refused);
    const mixed = '[file:///media/usb, https://policy.example.net/]';
    assert.deepEqual(mistakesOf(['{ contact: repository }'], '', mixed), []);
    assert.deepEqual(mistakesOf(['{ contact: repository }'], '', '{ url: file:///media/usb }'), refused);
  });

  it('is refused when it is a fleet server, and no fleet is configured', () => {
    assert.deepEqual(mistakesOf(['{ contact: fleet }']), refused);
    assert.deepEqual(mistakesOf(['{ contact: fleet }'], fleet), []);
  });

  it('is refused without a bake time', () => {
    assert.deepEqual(mistakesOf(['{ contact: repository, for: 0 }']), refused);
    assert.deepEqual(mistakesOf(['{ contact: none, for: 0 }']), []);
  });
});
