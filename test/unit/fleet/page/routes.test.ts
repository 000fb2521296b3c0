// The routes of the pages without a network: access, invalid requests, and headers.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { WritError } from '../../../../src/core/errors.js';
import { errorAnswer } from '../../../../src/fleet/http/answer-error.js';
import { type PageParts, registerPage } from '../../../../src/fleet/page/routes.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { hostDetail, hostLine, summary } from './planted-answers.js';

const signedIn = { cookie: 'writ_session=good' };

function partsOf(more: Partial<PageParts['queries']> = {}): PageParts {
  const authentication: PageParts['authentication'] = {
    visitorOf: async ({ headers: { cookie } }) =>
      cookie === signedIn.cookie ? { who: 'token 1', role: 'view', by: 'session' } : undefined,
    signIn: async (token) => {
      if (token !== 'good') throw new WritError('FLEET_TOKEN_REFUSED', 'the token is unknown');
      return 'writ_session=good';
    },
    signOut: async () => 'writ_session=',
  };
  const queries: PageParts['queries'] = {
    summary: async () => summary(),
    hosts: async () => ({ schema: 1, type: 'fleet.hosts', hosts: [hostLine('edge-1')] }),
    host: async (name) => {
      if (name === 'opa/a/b') return hostDetail('plain');
      throw new WritError('FLEET_HOST_UNKNOWN', 'no host is called this');
    },
    release: async () => ({ schema: 1, type: 'fleet.release', releases: [], offers: [], curve: [] }),
    history: async () => ({ schema: 1, type: 'fleet.history', intervals: [] }),
    log: async () => ({ schema: 1, type: 'fleet.log', entries: [] }),
    ...more,
  };
  const faultOf: PageParts['faultOf'] = (error) => {
    const { status, body } = errorAnswer(error);
    return { status, ...body };
  };
  return { clock: fakeClock(), queries, authentication, faultOf };
}

async function within(
  play: (app: FastifyInstance) => Promise<void>,
  more?: Partial<PageParts['queries']>,
): Promise<void> {
  const app = fastify({ routerOptions: { maxParamLength: 1000 } });
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: unknown, body: string) => {
      return new URLSearchParams(body);
    },
  );
  await registerPage(app, partsOf(more));
  try {
    await play(app);
  } finally {
    await app.close();
  }
}

const asked = ['/', '/hosts?where=state%3Drefused', '/hosts/opa%2Fa%2Fb', '/releases/dns/stable/4', '/log'];

describe('the pages', () => {
  it('are shown to a signed-in visitor, never cached, and load only files of this server', () =>
    within(async (app) => {
      for (const url of asked) {
        const { statusCode, headers } = await app.inject({ url, headers: signedIn });
        assert.equal(statusCode, 200, url);
        assert.equal(headers['content-type'], 'text/html; charset=utf-8');
        assert.equal(headers['cache-control'], 'no-store');
        assert.match(
          String(headers['content-security-policy']),
          /^default-src 'self'; .*frame-ancestors 'none'$/,
        );
        assert.equal(headers['x-content-type-options'], 'nosniff');
      }
    }));

  it('redirect other visitors to the sign-in, and from there back', () =>
    within(async (app) => {
      for (const url of asked) {
        const { statusCode, headers } = await app.inject({ url });
        assert.equal(statusCode, 303);
        const location = new URL(String(headers.location), 'http://own');
        assert.deepEqual([location.pathname, location.searchParams.get('next')], ['/sign-in', url]);
      }
    }));

  it('reload from this site when a link of another site sent no cookie', () =>
    within(async (app) => {
      const { statusCode, body } = await app.inject({
        url: '/log',
        headers: { 'sec-fetch-site': 'cross-site' },
      });
      assert.equal(statusCode, 200);
      assert.match(body, /<meta http-equiv="refresh" content="0; url=\/log"/);
      assert.doesNotMatch(body, /No change is recorded/);
    }));

  it('show the mistake of a filter, a number or a name', () =>
    within(async (app) => {
      const table = [
        ['/hosts?where=colour%3Dred', 400, /value="colour=red"/],
        ['/hosts?where=a%3D1&where=b%3D2', 400, /is not a single text/],
        [`/hosts?after=${'a'.repeat(2001)}`, 400, /at most 2000 characters/],
        ['/releases/dns/stable/4x', 400, /serial is not a whole number/],
        ['/log?before=99999999999999999999', 400, /before is not a whole number/],
        ['/hosts/nobody', 404, /FLEET_HOST_UNKNOWN/],
      ] as const;
      for (const [url, status, words] of table) {
        const { statusCode, body } = await app.inject({ url, headers: signedIn });
        assert.equal(statusCode, status, url);
        assert.match(body, words);
      }
    }));

  it('show an error page for an unknown address to a browser, and the error of the API to programs', () =>
    within(async (app) => {
      const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
      for (const url of ['/hots', '/hosts/a/b', '/v1x', '/%3Cb%3E']) {
        const { statusCode, headers, body } = await app.inject({ url, headers: browser });
        assert.equal(statusCode, 404, url);
        assert.equal(headers['content-type'], 'text/html; charset=utf-8');
        assert.match(String(headers['content-security-policy']), /^default-src 'self'; /);
        assert.match(body, /<h1>Not found<\/h1>.*href="\/"/s);
      }
      for (const [url, headers] of [
        ['/v1/nothing', browser],
        ['/v1', browser],
        ['/hots', { accept: '*/*' }],
        ['/hots', {}],
      ] as const) {
        const answer = await app.inject({ url, headers });
        assert.equal(answer.statusCode, 404, url);
        assert.match(String(answer.headers['content-type']), /^application\/json/);
      }
    }));

  it('show no details of an error of the server', () =>
    within(
      async (app) => {
        const { statusCode, body } = await app.inject({ url: '/', headers: signedIn });
        assert.equal(statusCode, 500);
        assert.doesNotMatch(body, /SELECT/);
      },
      { summary: () => Promise.reject(new Error('SELECT secret')) },
    ));
});

describe('an asset of the pages', () => {
  it('has its digest in its name, is cached without end, and exists in no other version', () =>
    within(async (app) => {
      const { body: page } = await app.inject({ url: '/', headers: signedIn });
      const names = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, name = '']) => name);
      assert.equal(names.length, 3);
      for (const url of names) {
        const { statusCode, headers } = await app.inject({ url });
        assert.equal(statusCode, 200, url);
        assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      }
      const { statusCode } = await app.inject({ url: '/assets/page-000000000000.css' });
      assert.equal(statusCode, 404);
    }));
});

describe('signing in', () => {
  const form = (fields: Record<string, string>) => ({
    method: 'POST' as const,
    url: '/sign-in',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(fields).toString(),
  });

  it('sets a cookie for a token, and redirects to the requested page', () =>
    within(async (app) => {
      const { statusCode, headers } = await app.inject(form({ token: ' good ', next: '/hosts' }));
      assert.deepEqual(
        [statusCode, headers.location, headers['set-cookie']],
        [303, '/hosts', 'writ_session=good'],
      );
    }));

  it('redirects to no other server, whatever a link contains', () =>
    within(async (app) => {
      const { headers } = await app.inject(form({ token: 'good', next: '//evil.example' }));
      assert.equal(headers.location, '/');
      const { body } = await app.inject({ url: '/sign-in?next=https%3A%2F%2Fevil.example' });
      assert.match(body, /name="next" value="\/"/);
    }));

  it('refuses an invalid token, and never repeats it', () =>
    within(async (app) => {
      const { statusCode, headers, body } = await app.inject(form({ token: 'writ_people_wrong' }));
      assert.deepEqual([statusCode, headers['set-cookie']], [401, undefined]);
      assert.match(body, /role="alert"/);
      assert.doesNotMatch(body, /people_wrong/);
    }));

  it('is ended by a form', () =>
    within(async (app) => {
      const { statusCode, headers } = await app.inject({
        method: 'POST',
        url: '/sign-out',
        headers: signedIn,
      });
      assert.deepEqual(
        [statusCode, headers.location, headers['set-cookie']],
        [303, '/sign-in', 'writ_session='],
      );
    }));
});
