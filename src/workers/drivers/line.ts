// Notifies daemons with a text protocol on a control socket, as BIRD, unbound, NSD or HAProxy: sends a text, reads to the end of the
// answer, and judges it by the configured expectation. Half-closes the connection only if configured. Retries to connect within
// the deadline, because some sockets are missing for a moment during a reload.
import { dirname, join } from 'node:path';
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { WritError } from '../../core/errors.js';
import { exchange, requireSocketPath } from '../../platform/net/unix-socket.js';
import type { Clock } from '../../platform/time/clock.js';
import { confirmed, notified, notNow, refused, tailOf, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { createAnswerGrace } from '../contract/liveness.js';
import { createWorkerProcess, livenessVerb, processVerbs } from '../identity/worker-process.js';
import { createLineReader, type LineAnswer, type LineRules } from '../protocols/line-protocol.js';
import {
  absoluteFile,
  driverKind,
  type OptionsOf,
  oneOf,
  property,
  text,
  yesOrNo,
} from '../shared/driver-options.js';
import { createExpectation, type Expectation, expectProperties, patternOf } from '../shared/expectation.js';
import { membersProperty } from '../shared/member-command.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';
import {
  fillPlaceholders,
  isWorkerName,
  requireKnownPlaceholders,
  usesWorkerName,
} from '../shared/placeholders.js';
import {
  listSockets,
  pathGlobPattern,
  requireOwnPlace,
  socketLiveness,
  socketOf,
} from '../shared/socket-set.js';

const maxTailCharacters = 1000;
/** HAProxy's master socket is missing while it reads its configuration. This grace period applies if another program reloads it. */
const leastGraceMs = 3000;

const regularExpression = text('a regular expression, as "^[0-9]{4} "', { minLength: 1, maxLength: 1000 });

const properties = {
  // With `members`, the path has {worker}.
  line: text('a path or glob of unix sockets, with wildcards in its last part only, as /run/bird/bird.ctl', {
    pattern: pathGlobPattern,
    maxLength: 255,
  }),
  send: text('a text (put it in quotes) to send; a line end is added where it has none', {
    pattern: '^[^\\u0000]+$',
    maxLength: 4096,
  }),
  end: oneOf('eof', 'line'),
  until: regularExpression,
  greeting: regularExpression,
  halfClose: yesOrNo('for a daemon that answers only then'),
  confirms: yesOrNo('the daemon answers after it uses the generation, and reliably'),
  pidFile: absoluteFile('an absolute path of the pid file of its master, as /run/haproxy.pid'),
  members: membersProperty,
  notNow: property<NotNowConfig>(notNowOfText),
  ...expectProperties,
};

type LineOptions = OptionsOf<typeof properties, 'line' | 'send'>;

export const line = driverKind({ name: 'line', properties, required: ['send'], create: createDriver });

function createDriver(options: LineOptions, context: DriverContext): Driver {
  const { clock } = context;
  requireSocketPath(join(dirname(options.line), 'x'));
  requireKnownPlaceholders('reset.send', [options.send]);
  requireOwnPlace('reset.line', options.line, options.members);
  const expectation = createExpectation(options);
  if (options.confirms === true && !expectation.isGiven)
    throw new WritError('CONFIG_INVALID', 'reset: `confirms` needs `expect` or `expectMatch`');
  const rules = rulesOf(options);
  const busy = deferralRule(options.notNow);
  const { pidFile } = options;
  if (pidFile !== undefined) requireOwnPlace('reset.pidFile', pidFile, options.members);
  const listensAt = (worker: string): { path: string } => ({ path: placeOf(options, worker) });
  const process = createWorkerProcess({ process: context.process, pidFile, listensAt }, context);
  const grace = createAnswerGrace(clock, leastGraceMs);
  return {
    verdictClass: options.confirms === true ? 'true' : 'early',
    members: () => listSockets(options.line, options.members),
    reset: (worker, reset) => {
      grace.notified(worker, reset.timeoutMs);
      process?.searchNow(worker);
      return notify(worker, reset, { options, rules, expectation, busy, clock });
    },
    liveness: (worker) => grace.within(worker, () => socketLiveness(listensAt(worker))),
    // Use the pid of a master for liveness, because its socket is missing during a reload.
    ...livenessVerb(process),
    ...processVerbs(process),
  };
}

/** @returns a function that creates the rules of one answer; the time for all its lines together is bounded */
function rulesOf({ end, until, greeting }: LineOptions): () => LineRules {
  if (end !== undefined && until !== undefined)
    throw new WritError('CONFIG_INVALID', 'reset has `end` and `until`: give one of them');
  const last = until === undefined ? undefined : patternOf('until', until);
  const first = greeting === undefined ? undefined : patternOf('greeting', greeting);
  return () => ({
    end: last === undefined ? (end ?? 'eof') : last.forParts(),
    ...(first === undefined ? {} : { greeting: first.forParts() }),
  });
}

interface LineDriver {
  readonly options: LineOptions;
  readonly rules: () => LineRules;
  readonly expectation: Expectation;
  readonly busy: DeferralRule;
  readonly clock: Clock;
}

function placeOf({ line: place, members }: LineOptions, worker: string): string {
  return socketOf(place, members, worker);
}

async function notify(
  worker: string,
  { target, ...limits }: ResetOptions,
  driver: LineDriver,
): Promise<Answer> {
  const { options, rules, clock } = driver;
  const path = placeOf(options, worker);
  if (dirname(path) !== dirname(options.line))
    return unreachable(`${path} is outside the configured directory`);
  if ((options.members !== undefined || usesWorkerName([options.send])) && !isWorkerName(worker))
    return unreachable(`${path}: a socket of this name cannot stand in \`send\``);
  const reader = createLineReader(rules());
  const fill = (text: string): string => fillPlaceholders(text, target, worker);
  const request = fill(options.send);
  const result = await exchange({
    path,
    request: request.endsWith('\n') ? request : `${request}\n`,
    read: reader.push,
    readEnd: reader.end,
    halfClose: options.halfClose === true ? 'after-request' : 'never',
    connect: 'until-deadline',
    clock,
    ...limits,
  });
  if (result.kind === 'failed') return unreachable(`${path}: ${result.reason}`);
  return judge(path, result.value, driver, fill);
}

function judge(
  path: string,
  answer: LineAnswer,
  { expectation, options, busy }: LineDriver,
  fill: (text: string) => string,
): Answer {
  if (answer.kind === 'malformed') return unreachable(`${path}: ${answer.reason}`);
  const answerText = answer.kind === 'text' ? answer.text : '';
  const text = tailOf(answerText, maxTailCharacters) || 'an empty answer';
  const matched = expectation.judge(answerText, fill);
  if (matched === 'no-verdict') return unreachable(`${path}: \`expectMatch\` takes too long on: ${text}`);
  // A stopped or dead daemon sends no bytes either, so an empty answer is neither a refusal nor a confirmation.
  if (answer.kind === 'silence')
    return matched === 'no-match' ? unreachable(`${path}: ${text}`) : notified(text);
  if (matched === 'no-match') return busy.forText(answerText) ? notNow(text) : refused(text);
  return options.confirms === true ? confirmed(text) : notified(text);
}
