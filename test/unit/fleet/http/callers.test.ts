// Session cookies: with TLS only the cookie that a browser accepts from this host alone.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  beginSession,
  cookieText,
  endSession,
  findCaller,
  hasSecurePage,
} from '../../../../src/fleet/http/callers.js';
import { createRefusalBound } from '../../../../src/fleet/http/refusal-bound.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';

const ip = '192.0.2.1';

async function scene() {
  const dir = tempDir(memory());
  const clock = fakeClock();
  const bench = await fleetBench(dir.join('store'), clock);
  const partsOf = (secure: boolean) => ({
    ...{ db: bench.store.db, bound: createRefusalBound(clock) },
    ...{ nowMs: clock.nowMs(), secure },
  });
  return {
    signIn: async (secure: boolean) => {
      const { id, token } = await bench.token({ kind: 'people', role: 'view' });
      const session = await beginSession(partsOf(secure), token, { headers: {}, ip });
      return { who: `token ${id}`, session, cookie: cookieText(session, secure) };
    },
    findName: async (secure: boolean, cookie: string) =>
      (await findCaller(partsOf(secure), { headers: { cookie }, ip })).who,
    signOut: (secure: boolean, cookie: string) => endSession(partsOf(secure), { cookie }),
    [Symbol.asyncDispose]: async () => {
      await bench[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe('the cookie of a session', () => {
  it('has the prefix of this host over TLS, and a plain name on loopback without it', longCase, async () => {
    await using s = await scene();
    const secure = await s.signIn(true);
    assert.match(
      secure.cookie,
      /^__Host-writ_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
    );
    assert.equal(await s.findName(true, secure.cookie.split(';')[0] ?? ''), secure.who);
    const plain = await s.signIn(false);
    assert.match(plain.cookie, /^writ_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    assert.equal(await s.findName(false, plain.cookie.split(';')[0] ?? ''), plain.who);
  });

  it('is Secure wherever browsers use TLS: of the server, of a proxy that --public-url names, and beyond loopback', () => {
    const place = { hasTls: false, host: '127.0.0.1' };
    assert.equal(hasSecurePage(place), false);
    assert.equal(hasSecurePage({ ...place, publicUrl: 'http://127.0.0.1:8090' }), false);
    assert.equal(hasSecurePage({ ...place, publicUrl: 'https://fleet.example.net' }), true);
    assert.equal(hasSecurePage({ ...place, hasTls: true }), true);
    assert.equal(hasSecurePage({ ...place, host: '192.0.2.1' }), true);
  });

  it('of a sibling domain, which cannot set the prefix, signs its visitor in as no other person', async () => {
    await using s = await scene();
    const [visitor, attacker] = [await s.signIn(true), await s.signIn(true)];
    const tossed = `writ_session=${attacker.session}`;
    await rejectsCode('FLEET_TOKEN_REFUSED', s.findName(true, tossed));
    const both = `${tossed}; __Host-writ_session=${visitor.session}`;
    assert.equal(await s.findName(true, both), visitor.who);
    await s.signOut(true, both);
    await rejectsCode('FLEET_TOKEN_REFUSED', s.findName(true, both));
    assert.equal(await s.findName(true, `__Host-writ_session=${attacker.session}`), attacker.who);
  });

  it(
    'of a version before the prefix is no session over TLS: its person signs in again',
    longCase,
    async () => {
      await using s = await scene();
      const { session } = await s.signIn(true);
      await rejectsCode('FLEET_TOKEN_REFUSED', s.findName(true, `writ_session=${session}`));
    },
  );
});
