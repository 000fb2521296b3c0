// Daemons with a control socket of text lines, as BIRD, unbound, NSD or HAProxy: sends a text, reads to the
// protocol's own end, and believes what the user says the answer is worth. Never half-closes unless told to, and
// tries again to connect inside the deadline: some sockets are away for a moment while their daemon reloads.
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
import { type NotNowRule, notNowRule } from '../shared/not-now.js';
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
/** HAProxy's master socket is away for as long as it reads its configuration; this where somebody else reloads it. */
const leastGraceMs = 3000;

const regularExpression = text('a regular expression, as "^[0-9]{4} "', { minLength: 1, maxLength: 1000 });

const properties = {
  // With `members`, a path with {worker}.
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
  confirms: yesOrNo('the daemon answers after it uses the generation, and right both ways'),
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
  const busy = notNowRule(options.notNow);
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
    // The pid of a master says more than its socket, which is away while it reloads.
    ...livenessVerb(process),
    ...processVerbs(process),
  };
}

/** @returns the rules for each answer: the time of all its lines together is bounded */
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
  readonly busy: NotNowRule;
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
  const said = answer.kind === 'text' ? answer.text : '';
  const text = tailOf(said, maxTailCharacters) || 'an empty answer';
  const met = expectation.judge(said, fill);
  if (met === 'no-verdict') return unreachable(`${path}: \`expectMatch\` takes too long on: ${text}`);
  // A daemon that was stopped or died says nothing too: neither a no nor a proof.
  if (answer.kind === 'silence') return met === 'no' ? unreachable(`${path}: ${text}`) : notified(text);
  if (met === 'no') return busy.forText(said) ? notNow(text) : refused(text);
  return options.confirms === true ? confirmed(text) : notified(text);
}
