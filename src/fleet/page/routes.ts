// Routes of the pages: read and check the parameters, run the queries of the API, and render the result. Page authentication and
// the queries decide what a visitor may see. A request without credentials is redirected to the sign-in.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { parseHostFilter } from '../../core/fleet/host-filter.js';
import { given } from '../../core/given.js';
import type { Clock } from '../../platform/time/clock.js';
import type { FleetQueries } from '../queries/fleet-queries.js';
import { ownPath } from './addresses.js';
import { type Assets, readAssets } from './assets.js';
import { firstScreen } from './first-screen.js';
import { hostPage } from './host.js';
import { hostsPage, refusedFilterPage } from './hosts.js';
import type { Frame } from './layout.js';
import { logPage } from './log.js';
import { releasePage } from './release.js';
import { type Fault, faultPage, reloadPage } from './sign-in.js';
import { type PageAuthentication, registerSignIn } from './sign-in-routes.js';

export interface PageParts {
  readonly clock: Clock;
  readonly queries: Pick<FleetQueries, 'summary' | 'hosts' | 'host' | 'release' | 'history' | 'log'>;
  readonly authentication: PageAuthentication;
  /** @returns the public part of an error, and its status; logs an error of the server */
  readonly faultOf: (error: unknown) => Fault;
}

const rowsOfPage = 100;
const maxTextLength = 2000;
/** Forbids inline code, foreign resources, foreign frames, and forms that send to another server. */
const contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Adds the pages to an app that can parse forms. A separate scope renders their errors as pages. */
export async function registerPage(app: FastifyInstance, parts: PageParts): Promise<void> {
  const assets = readAssets();
  await app.register((scope, _options, done) => {
    scope.addHook('onRequest', async (_request, reply) => {
      void reply.headers({
        'cache-control': 'no-store',
        'content-security-policy': contentPolicy,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      });
    });
    scope.setErrorHandler((error, request, reply) => {
      const fault = parts.faultOf(error);
      const page = faultPage(fault, frameOf(request, parts, assets));
      return sendPage(reply.code(fault.status), page);
    });
    registerAssets(scope, assets);
    registerSignIn(scope, {
      authentication: parts.authentication,
      frameOf: (request) => frameOf(request, parts, assets),
    });
    for (const [url, make] of Object.entries(pages))
      scope.get(url, (request, reply) => answer({ request, reply, parts, assets, make }));
    scope.get('/*', (request, reply) => {
      if (!wantsPage(request)) return reply.callNotFound();
      const fault = { status: 404, code: 'USAGE', message: 'not found' };
      return sendPage(reply.code(404), faultPage(fault, frameOf(request, parts, assets)));
    });
    done();
  });
}

interface Asked {
  readonly request: FastifyRequest;
  readonly queries: PageParts['queries'];
  readonly role: Role;
  readonly frame: Frame;
}

type MakePage = (asked: Asked) => Promise<string>;

const pages: Readonly<Record<string, MakePage>> = {
  '/': async ({ queries, role, frame }) => firstScreen(await queries.summary(role), frame),
  '/hosts': async ({ request, queries, role, frame }) => {
    const [where, after] = [textOf(request.query, 'where') ?? '', textOf(request.query, 'after')];
    const question = { filter: parseHostFilter(where), limit: rowsOfPage, ...given({ after }) };
    return hostsPage({ where, ...given({ after }) }, await queries.hosts(question, role), frame);
  },
  '/hosts/:key': async ({ request, queries, role, frame }) =>
    hostPage(await queries.host(textOf(request.params, 'key') ?? '', role), frame),
  '/releases/:bundle/:channel/:serial': async ({ request, queries, frame }) => {
    const [bundle = '', channel = ''] = ['bundle', 'channel'].map((name) => textOf(request.params, name));
    const release = { bundle, channel, serial: numberOf(request.params, 'serial') ?? 0 };
    const against = numberOf(request.query, 'against');
    const report = await queries.release({ ...release, ...given({ against }) });
    const { intervals } = await queries.history({ of: release, limit: rowsOfPage });
    return releasePage(release, { ...report, intervals }, frame);
  },
  '/log': async ({ request, queries, frame }) => {
    const before = numberOf(request.query, 'before');
    return logPage(await queries.log({ limit: rowsOfPage, ...given({ before }) }), frame);
  },
};

interface Answering {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly parts: PageParts;
  readonly assets: Assets;
  readonly make: MakePage;
}

async function answer({ request, reply, parts, assets, make }: Answering): Promise<FastifyReply> {
  const { queries, authentication } = parts;
  const bare = frameOf(request, parts, assets);
  const visitor = await authentication.visitorOf(request);
  if (visitor === undefined) return redirectToSignIn(request, reply, bare);
  const frame = { ...bare, visitor };
  try {
    return sendPage(reply, await make({ request, queries, role: visitor.role, frame }));
  } catch (error) {
    const fault = parts.faultOf(error);
    const isFilter = fault.code === 'USAGE' && request.routeOptions.url === '/hosts';
    const where = String(new URL(request.url, 'http://own').searchParams.get('where') ?? '');
    const page = isFilter ? refusedFilterPage(where, fault.message, frame) : faultPage(fault, frame);
    return sendPage(reply.code(fault.status), page);
  }
}

/** Redirects to the sign-in. A link on another site sends no cookie (SameSite=Strict), so a reload from this site comes first. */
function redirectToSignIn(request: FastifyRequest, reply: FastifyReply, frame: Frame): FastifyReply {
  if (request.headers['sec-fetch-site'] === 'cross-site') return sendPage(reply, reloadPage(frame));
  return reply.redirect(`/sign-in?${new URLSearchParams({ next: frame.address })}`, 303);
}

/** @returns whether a browser requested an address outside the API; other clients get the errors of the API */
function wantsPage({ url, headers: { accept = '' } }: FastifyRequest): boolean {
  return !/^\/v1(?:[/?]|$)/.test(url) && /(?:^|,)\s*text\/html\b/i.test(accept);
}

function frameOf(request: FastifyRequest, { clock }: PageParts, { addresses }: Assets): Frame {
  return { assets: addresses, atMs: clock.nowMs(), address: ownPath(request.url) };
}

function registerAssets(scope: FastifyInstance, { byAddress }: Assets): void {
  scope.get('/assets/:name', (request, reply) => {
    const asset = byAddress.get(request.url);
    if (asset === undefined)
      return reply.code(404).type('text/plain').send('there is no such file in this version\n');
    const forever = 'public, max-age=31536000, immutable';
    return reply.type(asset.type).header('cache-control', forever).send(asset.bytes);
  });
}

function sendPage(reply: FastifyReply, html: string): FastifyReply {
  return reply.type('text/html; charset=utf-8').send(html);
}

/** @returns undefined for a missing or empty parameter. @throws USAGE for a repeated or too long one */
function textOf(from: unknown, name: string): string | undefined {
  const value = (from as Readonly<Record<string, unknown>>)[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string' && value.length <= maxTextLength) return value;
  throw new WritError('USAGE', `${name} is not a single text of at most ${maxTextLength} characters`);
}

function numberOf(from: unknown, name: string): number | undefined {
  const text = textOf(from, name);
  if (text === undefined) return undefined;
  if (/^[0-9]{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new WritError('USAGE', `${name} is not a whole number`);
}
