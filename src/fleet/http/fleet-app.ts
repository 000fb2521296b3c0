// Serves the routes with fastify: roles are checked before schemas, schemas before handlers, bodies have bounds, errors have codes,
// answers have ETags and headers that prevent content sniffing. Contains no answer of its own.
import { createHash } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { WritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { given } from '../../core/given.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { BodyBudget, tokenShareBytes } from '../bodies/body-budget.js';
import { BodyGate } from '../bodies/body-gate.js';
import { countJsonValues, maxJsonValues } from '../bodies/count-values.js';
import type { FleetStore } from '../store/open-store.js';
import { errorAnswer } from './answer-error.js';
import { type Caller, findCaller, requireRole, requireSameOrigin } from './callers.js';
import type { FleetMetrics } from './fleet-metrics.js';
import type { IdentityRule } from './identity-rules.js';
import type { RefusalBound } from './refusal-bound.js';
import type { Route } from './routes.js';

export interface AppOptions {
  readonly store: FleetStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: FleetMetrics;
  readonly routes: readonly Route[];
  readonly bound: RefusalBound;
  readonly identity?: IdentityRule | undefined;
  /** Sessions over TLS alone. */
  readonly secure: boolean;
  readonly addPages: (app: FastifyInstance) => Promise<void>;
  readonly createServer: (handler: RequestListener) => Server;
  /** True from the moment at which the server begins to close. */
  readonly isEnding: () => boolean;
}

const anonymousCaller: Caller = { who: '', role: 'view' };
/** For routes without a bound of their own: a few fields. */
const maxFieldsBytes = 8192;
const safetyHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** @returns the fastify instance with all routes, pages and error handlers. It does not listen yet. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const app = fastify({
    serverFactory: (handler) => options.createServer(handler),
    bodyLimit: maxFieldsBytes,
    routerOptions: { maxParamLength: 1000 },
    // fastify runs no hook for a URL that it cannot parse.
    frameworkErrors: (error, _request, reply) =>
      sendError(error, reply.headers(safetyHeaders) as FastifyReply, options.log),
    ajv: { customOptions: { removeAdditional: false, coerceTypes: true, allErrors: false } },
    // The listener has these timeouts, because they begin before a request is parsed.
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  addBodyParsers(app);
  addRequestHooks(app, options);
  const gate = new BodyGate({ budget: new BodyBudget(), clock: options.clock });
  gate.addTo(app);
  app.setErrorHandler((error, _request, reply) => sendError(error, reply, options.log));
  app.setNotFoundHandler((_request, reply) => {
    const error = new WritError('USAGE', 'not found', {
      hint: 'GET /v1/openapi.json lists the addresses.',
    });
    void reply.code(404).send({ schema: 1, type: 'error', ...error.toJSON() });
  });
  for (const route of options.routes) addRoute(app, route, gate, options);
  await options.addPages(app);
  await app.ready();
  return app;
}

/** Parses JSON to an object, or keeps its bytes for a signature over them; parses a form to its fields; refuses other types. */
function addBodyParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      if ((request.routeOptions.config as { raw?: true }).raw) return body;
      if (countJsonValues(body) > maxJsonValues) throw new WritError('USAGE', 'the body has too many values');
      try {
        return JSON.parse(body.toString('utf8'), withoutProto) as unknown;
      } catch {
        throw new WritError('USAGE', 'the body is not JSON');
      }
    },
  );
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: unknown, body: string) => {
      return new URLSearchParams(body);
    },
  );
}

function withoutProto(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

function addRequestHooks(app: FastifyInstance, { log, metrics, isEnding }: AppOptions): void {
  app.addHook('onRequest', async (_request, reply) => {
    void reply.headers(safetyHeaders);
    if (!isEnding()) return;
    void reply.header('connection', 'close');
    throw new WritError('FLEET_OVERLOADED', 'the server is stopping');
  });
  app.addHook('preSerialization', async (request, reply, payload) => {
    if (request.method !== 'GET' || reply.statusCode !== 200) return payload;
    const etag = etagOf(payload as object);
    void reply.header('etag', etag).header('cache-control', 'private, no-cache');
    if (!(request.headers['if-none-match'] ?? '').split(/, */).includes(etag)) return payload;
    void reply.code(304);
    return payload;
  });
  app.addHook('onSend', async (_request, reply, payload) => {
    if (reply.statusCode === 503 || reply.statusCode === 429) void reply.header('retry-after', '5');
    return reply.statusCode === 304 ? null : payload;
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    metrics.request(route, reply.statusCode);
    const { method, ip: remote } = request;
    log.info({ route, method, status: reply.statusCode, remote, durationMs: reply.elapsedTime }, 'request');
  });
}

/** Without the times of the answer, so that an answer that only became older keeps its ETag. */
function etagOf(payload: object): string {
  const text = JSON.stringify({ ...payload, atMs: 0, countedAtMs: 0 });
  return `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
}

function addRoute(
  app: FastifyInstance,
  route: Route,
  gate: BodyGate,
  { store, clock, bound, identity, secure }: AppOptions,
): void {
  const { method, url, querystring, params, body, raw, access, maxBodyBytes = maxFieldsBytes } = route;
  const isOpen = access === 'anyone' || access === 'host' || access === 'opa';
  const callers = new WeakMap<FastifyRequest, Caller>();
  const admit = async (request: FastifyRequest, needed: Role) => {
    const asked = { db: store.db, bound, nowMs: clock.nowMs(), secure, ...given({ identity }) };
    const caller = await findCaller(asked, request);
    requireRole(caller, needed);
    return caller;
  };
  app.route({
    method,
    url,
    bodyLimit: maxBodyBytes,
    config: { raw } as object,
    schema: {
      ...(querystring === undefined ? {} : { querystring }),
      ...(params === undefined ? {} : { params }),
      ...(body === undefined ? {} : { body }),
    },
    // Before the body is read, so that a caller without the role costs no memory.
    onRequest: async (request: FastifyRequest) => {
      if (route.admit !== undefined) gate.setTerms(request, await route.admit(request));
      if (isOpen) return;
      const caller = await admit(request, access);
      // A browser sends the cookie of a proxy with a form of another site, as it would send a session.
      if (caller.by !== 'token' && method !== 'GET') requireSameOrigin(request.headers);
      callers.set(request, caller);
      const account = { kind: 'credential', id: caller.who, maxBytes: tokenShareBytes } as const;
      gate.setTerms(request, { account, maxBytes: maxBodyBytes });
    },
    handler: (request: FastifyRequest, reply: FastifyReply) =>
      gate.keepDuring(request, async () =>
        route.handle({
          ...{ request, reply, caller: callers.get(request) ?? anonymousCaller },
          again: async () => (isOpen ? anonymousCaller : admit(request, access)),
        }),
      ),
  });
}

function sendError(error: unknown, reply: FastifyReply, log: Logger): void {
  const { status, body, isOurs } = errorAnswer(error);
  if (isOurs) log.error({ err: error }, 'a request was not answered');
  void reply.code(status).send(body);
}
