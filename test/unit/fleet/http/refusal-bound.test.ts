import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { createRefusalBound, type RefusalBound } from '../../../../src/fleet/http/refusal-bound.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const flood = '192.0.2.1';

describe('credentials that are refused', () => {
  /** @returns how many of the credentials were checked */
  async function refuse(bound: RefusalBound, count: number, address = flood): Promise<number> {
    let checks = 0;
    const check = () => {
      checks++;
      return Promise.reject(new WritError('FLEET_TOKEN_REFUSED', 'no'));
    };
    const asked = Array.from({ length: count }, (_, at) =>
      bound.guard({ address, credential: `guess ${at}` }, check).catch((error: WritError) => error.code),
    );
    const codes = await Promise.all(asked);
    assert.deepEqual(
      [...new Set(codes)].sort(),
      checks < count ? ['FLEET_REFUSED_OFTEN', 'FLEET_TOKEN_REFUSED'] : ['FLEET_TOKEN_REFUSED'],
    );
    return checks;
  }
  const good = (bound: RefusalBound, credential: string, address = flood) =>
    bound.guard({ address, credential }, () => Promise.resolve('in'));

  it('are checked a hundred times at once, and ten times a second from then on', async () => {
    const clock = fakeClock();
    const bound = createRefusalBound(clock);
    assert.equal(await refuse(bound, 150), 100);
    await clock.advance(2000);
    assert.equal(await refuse(bound, 150), 20);
    await clock.advance(3_600_000);
    assert.equal(await refuse(bound, 150), 100);
  });

  it('of one address do not count for another one, and an address of IPv6 is its first 64 bits', async () => {
    const bound = createRefusalBound(fakeClock());
    await refuse(bound, 150);
    assert.equal(await refuse(bound, 100, '192.0.2.2'), 100);
    await refuse(bound, 150, '2001:db8::1');
    await rejectsCode('FLEET_REFUSED_OFTEN', good(bound, 'new', '2001:db8::2'));
    assert.equal(await good(bound, 'new', '2001:db8:0:1::1'), 'in');
  });

  it('do not refuse a recently accepted credential, until it is refused itself', async () => {
    const clock = fakeClock();
    const bound = createRefusalBound(clock);
    await good(bound, 'mine');
    await refuse(bound, 150);
    assert.equal(await good(bound, 'mine'), 'in');
    await rejectsCode('FLEET_REFUSED_OFTEN', good(bound, 'new'));
    const revoked = () => Promise.reject(new WritError('FLEET_TOKEN_REFUSED', 'revoked'));
    await rejectsCode('FLEET_TOKEN_REFUSED', bound.guard({ address: flood, credential: 'mine' }, revoked));
    await rejectsCode('FLEET_REFUSED_OFTEN', good(bound, 'mine'));
  });

  it('do not include accepted credentials, nor those that an unavailable store could not judge', async () => {
    const bound = createRefusalBound(fakeClock());
    const away = () => Promise.reject(new WritError('FLEET_STORE_UNREACHABLE', 'away'));
    for (let at = 0; at < 150; at++) {
      await rejectsCode(
        'FLEET_STORE_UNREACHABLE',
        bound.guard({ address: flood, credential: `a ${at}` }, away),
      );
      assert.equal(await good(bound, `b ${at}`), 'in');
    }
  });

  it('do not include running checks: a thousand new valid credentials at once are all accepted', async () => {
    const bound = createRefusalBound(fakeClock());
    const check = () => new Promise<string>((resolve) => setImmediate(resolve, 'in'));
    const asked = Array.from({ length: 1000 }, (_, at) =>
      bound.guard({ address: flood, credential: `host ${at}` }, check),
    );
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(['in']));
    assert.equal(await refuse(bound, 150), 100);
  });

  it('are counted for a bounded number of addresses', async () => {
    const bound = createRefusalBound(fakeClock());
    await refuse(bound, 150);
    for (let at = 0; at < 10_000; at++) await good(bound, 'mine', `10.0.${at >> 8}.${at & 255}`);
    assert.equal(await good(bound, 'new'), 'in');
  });
});
