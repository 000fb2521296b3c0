// Notifies daemons over HTTP, as Prometheus or Caddy: one request to a URL or a Unix socket, judged by status and body. An answer is
// early unless the user configures that it follows the effect. Never follows a redirect, never shows what it sent, and never takes
// the answer of a proxy for that of the worker.
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfHttp } from '../../core/config/not-now-keys.js';
import { WritError } from '../../core/errors.js';
import type { PatternVerdict } from '../../platform/bounded-pattern.js';
import { askHttp, type HttpReply } from '../../platform/net/http-request.js';
import { readAuthorization } from '../../platform/users/authorization-file.js';
import { confirmed, notified, notNow, refused, tailOf, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { createAnswerGrace } from '../contract/liveness.js';
import {
  createWorkerProcess,
  isFoundByListening,
  livenessVerb,
  processVerbs,
} from '../identity/worker-process.js';
import { createHttpEndpoint, type HttpEndpoint, type HttpPlaceOptions } from '../protocols/http-place.js';
import {
  authorizationFile,
  driverKind,
  type OptionsOf,
  oneOf,
  property,
  text,
  yesOrNo,
} from '../shared/driver-options.js';
import { createExpectation, expectProperties } from '../shared/expectation.js';
import { membersProperty } from '../shared/member-command.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';
import { fillPlaceholders, requireKnownPlaceholders } from '../shared/placeholders.js';
import { pathGlobPattern, socketLiveness } from '../shared/socket-set.js';

const maxAnswerBytes = 64_000;
const maxTailCharacters = 1000;
/** A reloading daemon may bind its port again. This grace period applies if another program reloads it. */
const leastGraceMs = 3000;

/** Headers of the connection, and headers with secrets, which have their own option or none. */
const forbiddenHeaders =
  'host|connection|content-length|transfer-encoding|upgrade|expect|te|trailer|keep-alive|authorization|cookie|proxy-.*';

const httpPlace = property<HttpPlaceOptions>({
  type: ['string', 'object'],
  pattern: '^https?://[^\\s\\u0000-\\u001f]+$',
  maxLength: 2000,
  additionalProperties: false,
  required: ['unix', 'path'],
  properties: {
    unix: text('the path or glob of a unix socket, as /run/app.sock', {
      pattern: pathGlobPattern,
      maxLength: 255,
    }),
    path: text('the path of a URL, as /reload', { pattern: '^/[^\\s#\\u0000-\\u001f]*$', maxLength: 2000 }),
  },
  description: 'a URL, as http://127.0.0.1:9090/-/reload, or {unix: /run/app.sock, path: /reload}',
});

const headers = property<Readonly<Record<string, string>>>({
  type: 'object',
  maxProperties: 32,
  propertyNames: text('the name of a header in small letters; for a secret there is authorizationFile', {
    pattern: `^(?!(?:${forbiddenHeaders})$)[a-z0-9-]{1,64}$`,
  }),
  additionalProperties: text('one line of ASCII', { pattern: '^[\\u0020-\\u007e]*$', maxLength: 4096 }),
  description: 'a group of headers, as {content-type: application/json}',
});

const properties = {
  http: httpPlace,
  method: oneOf('POST', 'PUT', 'PATCH', 'GET', 'DELETE'),
  headers,
  body: text('a text (put it in quotes)', { maxLength: 64_000 }),
  authorizationFile,
  status: property<number>({
    type: 'integer',
    minimum: 200,
    maximum: 599,
    description: 'a status from 200 to 599',
  }),
  confirms: yesOrNo('the answer comes after the worker uses the generation, and is reliable'),
  members: membersProperty,
  notNow: property<NotNowConfig>(notNowOfHttp),
  ...expectProperties,
};

type HttpOptions = OptionsOf<typeof properties, 'http'>;

export const http = driverKind({ name: 'http', properties, create: createDriver });

function createDriver(options: HttpOptions, context: DriverContext): Driver {
  const { clock } = context;
  const place = createHttpEndpoint(options.http, options.members);
  const expectation = createExpectation(options);
  const { method = 'POST', body } = options;
  if (body !== undefined && method === 'GET')
    throw new WritError('CONFIG_INVALID', 'reset: GET has no `body`');
  requireKnownPlaceholders('reset.body', [body ?? '']);
  const grace = createAnswerGrace(clock, leastGraceMs);
  const busy = deferralRule(options.notNow);
  // The kernel has no process of a worker on another host.
  const isLocal = isFoundByListening(place.listensAt('1'));
  const process = createWorkerProcess(
    { process: context.process, listensAt: isLocal ? place.listensAt : undefined },
    context,
  );
  return {
    verdictClass: options.confirms === true ? 'true' : 'early',
    members: place.members,
    reset: async (worker, reset) => {
      grace.notified(worker, reset.timeoutMs);
      process?.searchNow(worker);
      const reply = await ask(worker, reset, { options, place, clock });
      if (typeof reply === 'string') return unreachable(reply);
      const fill = (text: string): string => fillPlaceholders(text, reset.target, worker);
      const matched = reply.kind === 'failed' ? 'no-verdict' : expectation.judge(reply.body, fill);
      return judge(worker, reply, { ...options, busy }, matched);
    },
    liveness: async (worker) => {
      const listensAt = place.listensAt(worker);
      if (listensAt === undefined) return 'unknown';
      return grace.within(worker, () => socketLiveness(listensAt));
    },
    ...livenessVerb(process),
    ...processVerbs(process),
  };
}

async function ask(
  worker: string,
  { target, ...limits }: ResetOptions,
  { options, place, clock }: { options: HttpOptions; place: HttpEndpoint } & Pick<DriverContext, 'clock'>,
): Promise<HttpReply | string> {
  const at = place.at(worker, target);
  if (typeof at === 'string') return at;
  const authorization = readAuthorization(options.authorizationFile);
  if (authorization.kind === 'failed') return authorization.reason;
  const { method = 'POST', headers, body } = options;
  return askHttp({
    ...at,
    method,
    headers: { ...headers, ...authorization.headers },
    ...(body === undefined ? {} : { body: fillPlaceholders(body, target, worker) }),
    maxAnswerBytes,
    clock,
    ...limits,
  });
}

/** Statuses without a verdict on the policy: a missing right or path, an unavailable server behind a proxy, an overload. */
const noVerdicts: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 421, 425, 429, 502, 503, 504]);

interface JudgedOptions extends HttpOptions {
  readonly busy: DeferralRule;
}

function judge(worker: string, reply: HttpReply, options: JudgedOptions, matched: PatternVerdict): Answer {
  if (reply.kind === 'failed') return unreachable(`${worker}: ${reply.reason}`);
  const { status, body, retryAfterMs } = reply;
  const { busy } = options;
  const tail = tailOf(body, maxTailCharacters);
  const text = tail === '' ? `status ${status}` : `status ${status}: ${tail}`;
  if (status !== (options.status ?? 200)) {
    if (busy.forStatus({ status, body, hasRetryAfter: retryAfterMs !== undefined }))
      return notNow(`${worker}: ${text}`);
    const isVerdict = Math.trunc(status / 100) !== 3 && !noVerdicts.has(status);
    return isVerdict ? refused(text) : unreachable(`${worker}: ${text}`);
  }
  if (matched === 'no-verdict') return unreachable(`${worker}: \`expectMatch\` takes too long on: ${text}`);
  if (matched === 'no-match') return busy.forText(body) ? notNow(text) : refused(text);
  return options.confirms === true ? confirmed(text) : notified(text);
}
