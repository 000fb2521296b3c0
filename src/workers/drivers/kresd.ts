// Notifies Knot Resolver workers, found by their control sockets, by one command each. Only one exact answer confirms, because an error
// has the same form as any other answer. A prompt, a partial answer, or a timeout never confirms.
import { dirname, join } from 'node:path';
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { exchange, requireSocketPath } from '../../platform/net/unix-socket.js';
import { confirmed, notNow, refused, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { createKresdReader, encodeKresdCommand, type KresdAnswer } from '../protocols/kresd-protocol.js';
import { driverKind, type OptionsOf, property, text, yesOrNo } from '../shared/driver-options.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';
import { listByGlob, pathGlobPattern, socketIdentity, socketLiveness } from '../shared/socket-set.js';

const properties = {
  kresd: text(
    'a glob of control sockets, with wildcards in its last part only, as /run/knot-resolver/control/*',
    { pattern: pathGlobPattern, maxLength: 255 },
  ),
  command: text('one line of Lua, as policy_reset()', { pattern: '^[^\\r\\n\\u0000]+$', maxLength: 4096 }),
  expect: text('a text (put it in quotes): the one answer that means yes, as "0"', { maxLength: 4096 }),
  confirms: yesOrNo('the command fails on what the worker could not parse, as policy_reset() of the sample'),
  notNow: property<NotNowConfig>(notNowOfText),
};

type KresdOptions = OptionsOf<typeof properties, 'kresd' | 'command' | 'expect'>;

export const kresd = driverKind({
  name: 'kresd',
  properties,
  required: ['command', 'expect'],
  knowsProcess: true,
  create: createDriver,
});

function createDriver(options: KresdOptions, context: DriverContext): Driver {
  const directory = dirname(options.kresd);
  requireSocketPath(join(directory, 'x'));
  // A worker loads a file that it cannot parse as an empty list, and confirms it. So only the user or a check can make it reliable.
  const busy = deferralRule(options.notNow);
  const isVouchedFor = options.confirms ?? context.checked === 'yes';
  return {
    verdictClass: isVouchedFor ? 'true' : 'early',
    members: () => listByGlob(options.kresd, 'socket'),
    reset: (worker, reset) => notify(join(directory, worker), { ...options, busy }, reset, context),
    keepsProcess: 'yes',
    identity: (worker) => socketIdentity(join(directory, worker)),
    // A worker that loads rules does not answer, but the kernel still accepts connections for it.
    liveness: (worker) => socketLiveness({ path: join(directory, worker) }),
  };
}

async function notify(
  path: string,
  options: KresdOptions & { readonly busy: DeferralRule },
  { target: _, ...limits }: ResetOptions,
  { clock }: DriverContext,
): Promise<Answer> {
  if (dirname(path) !== dirname(options.kresd))
    return unreachable(`${path} is outside the configured directory`);
  const result = await exchange({
    path,
    request: encodeKresdCommand(options.command),
    read: createKresdReader(),
    clock,
    ...limits,
  });
  if (result.kind === 'failed') return unreachable(`${path}: ${result.reason}`);
  return judge(path, result.value, options);
}

function judge(
  path: string,
  answer: KresdAnswer,
  { expect, busy }: Pick<KresdOptions, 'expect'> & { readonly busy: DeferralRule },
): Answer {
  if (answer.kind === 'malformed') {
    return unreachable(`${path}: an answer of ${answer.length} bytes was announced: this is not a kresd`);
  }
  if (answer.text === expect) return confirmed(answer.text);
  return busy.forText(answer.text) ? notNow(answer.text) : refused(answer.text);
}
