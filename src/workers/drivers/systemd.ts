// Notifies systemd services, by unit or pattern: `systemctl reload` or a restart. A successful job proves no more than the unit's own
// command, so that it confirms only if the user configures it. Never notifies a unit that is not active or not loaded: systemd would
// start it, or do nothing and report success.
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { maxHookOutputBytes } from '../../core/limits.js';
import { type CommandResult, runCommand } from '../../platform/process/run-command.js';
import type { Clock } from '../../platform/time/clock.js';
import { confirmed, notified, notNow, refused, unlisted, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, Liveness, ResetOptions } from '../contract/driver.js';
import {
  parseUnitList,
  parseUnitState,
  reloadProofText,
  shownProperties,
  type UnitState,
  unitFailure,
  unitNamePattern,
} from '../protocols/systemd-units.js';
import { unitEndsSince } from '../protocols/unit-ends.js';
import { driverKind, type OptionsOf, oneOf, property, text, yesOrNo } from '../shared/driver-options.js';
import { firstLineOf } from '../shared/first-line.js';
import { commandEndText } from '../shared/member-command.js';
import { type DeferralRule, deferralRule } from '../shared/not-now.js';

const action = oneOf('reload', 'restart', 'try-restart', 'try-reload-or-restart');

const properties = {
  systemd: text('a unit or a pattern of units with its type, as nginx.service or worker@*.service', {
    // Excludes options of systemctl. Requires a type, because only some commands of systemctl expand `web` to `web.service`.
    pattern: '^[A-Za-z0-9:_.@*?\\[\\]\\\\][A-Za-z0-9:_.@*?\\[\\]\\\\-]*\\.[a-z]+$',
    maxLength: 200,
  }),
  action,
  confirms: yesOrNo('the job ends well only after the unit uses the generation'),
  notNow: property<NotNowConfig>(notNowOfText),
};

type SystemdOptions = OptionsOf<typeof properties, 'systemd'>;
type Action = NonNullable<SystemdOptions['action']>;

export const systemd = driverKind({ name: 'systemd', properties, knowsProcess: true, create: createDriver });

function createDriver(options: SystemdOptions, context: DriverContext): Driver {
  const { action = 'reload', confirms } = options;
  const asking = { ask: systemctl(context), clock: context.clock, busy: deferralRule(options.notNow) };
  const { ask } = asking;
  const isVouchedFor = confirms === true;
  const readState = (worker: string): Promise<UnitState | undefined> =>
    stateOf(ask, worker, { timeoutMs: askTimeoutMs });
  return {
    verdictClass: isVouchedFor ? 'true' : 'early',
    members: () => unitsOf(ask, options.systemd),
    reset: (unit, reset) => runJob({ unit, action, down: 'left', isVouchedFor }, reset, asking),
    restart: (unit, reset) =>
      runJob({ unit, action: 'restart', down: 'started', isVouchedFor: false }, reset, asking),
    liveness: async (worker) => livenessOf(await readState(worker)),
    failure: async (worker) => {
      const state = await readState(worker);
      return state && unitFailure(worker, state);
    },
    endsSince: async (worker, mark) => unitEndsSince(worker, mark, context),
    pid: async (worker) => (await readState(worker))?.mainPid,
    // Absent if a reset restarts, because each notification would create a process that was never notified.
    identity:
      action === 'reload' ? async (worker) => (await readState(worker))?.invocation || undefined : undefined,
  };
}

const askTimeoutMs = 5000;
const maxUnits = 1024;

type AskLimits = Omit<ResetOptions, 'target'>;
type Systemctl = (args: readonly string[], limits: AskLimits) => Promise<CommandResult>;

function systemctl(context: DriverContext): Systemctl {
  return (args, limits) =>
    runCommand({
      argv: ['systemctl', '--no-pager', '--no-ask-password', ...args],
      env: context.programPath === undefined ? {} : { PATH: context.programPath },
      cwd: '/',
      maxOutputBytes: maxHookOutputBytes,
      ...limits,
    });
}

/** Lists members. A failed unit is a dead worker and is included; an inactive unit was not started and is not. */
async function unitsOf(ask: Systemctl, pattern: string): Promise<readonly string[]> {
  const args = ['list-units', '--plain', '--no-legend', '--full', '--', pattern];
  const result = await ask(args, { timeoutMs: askTimeoutMs });
  const isWhole = result.kind === 'exited' && result.exitCode === 0 && !result.truncated;
  const units = isWhole ? parseUnitList(result.stdout) : undefined;
  if (units !== undefined && units.length <= maxUnits) return units;
  const noList = isWhole ? 'its list has a line that is not a unit' : commandEndText(result);
  const reason = units === undefined ? noList : `more than ${maxUnits} units`;
  throw unlisted(`systemctl cannot list ${pattern}: ${reason}`, { pattern, reason });
}

async function stateOf(ask: Systemctl, unit: string, limits: AskLimits): Promise<UnitState | undefined> {
  const result = await ask(['show', `--property=${shownProperties}`, '--', unit], limits);
  return result.kind === 'exited' && result.exitCode === 0 ? parseUnitState(result.stdout) : undefined;
}

interface Job {
  readonly unit: string;
  readonly action: Action;
  /** What to do with a unit that does not run. Only a requested restart starts it. */
  readonly down: 'left' | 'started';
  readonly isVouchedFor: boolean;
}

async function runJob(
  job: Job,
  reset: ResetOptions,
  { ask, clock, busy }: { ask: Systemctl; clock: Clock; busy: DeferralRule },
): Promise<Answer> {
  const { unit, action, down } = job;
  const { target: _, ...limits } = reset;
  if (!new RegExp(unitNamePattern).test(unit)) return unreachable(`${unit} is not a unit name`);
  const startedMs = clock.monotonicMs();
  const before = await stateOf(ask, unit, limits);
  const obstacle = whyNot(before, job);
  if (before === undefined || obstacle !== undefined) return unreachable(`${unit}: ${obstacle}`);
  const left = (): AskLimits => ({
    ...limits,
    timeoutMs: Math.max(limits.timeoutMs - (clock.monotonicMs() - startedMs), 1),
  });
  // Reset the start limit: it counts crashes of the release that is left, and would prevent the start of the restored one.
  if (down === 'started' && before.active === 'failed') await ask(['reset-failed', '--', unit], left());
  const result = await ask([action, '--', unit], left());
  if (result.kind !== 'exited') return unreachable(`${unit}: ${action}: ${commandEndText(result)}`);
  if (result.exitCode !== 0) {
    const failed = `${unit}: ${action} failed: ${commandEndText(result)}`;
    if (busy.forText(firstLineOf(result))) return notNow(failed);
    return hasFailedJob(result) ? refused(failed) : unreachable(failed);
  }
  const proof = action === 'reload' ? reloadProofText(before) : 'what it has read is unknown';
  const text = `${unit}: ${action} done; ${proof}`;
  return job.isVouchedFor ? confirmed(text) : notified(text);
}

/**
 * @returns whether the unit's own command or start failed, for which systemctl has one text. A missing right, an unavailable bus, or a
 * job that another caller cancelled has the same exit code, and is not a refusal
 */
function hasFailedJob(result: CommandResult): boolean {
  return result.kind === 'exited' && /^Job for \S+ failed/m.test(result.stderr);
}

function whyNot(state: UnitState | undefined, { action, down }: Job): string | undefined {
  if (state === undefined) return 'systemctl cannot show it';
  // A unit with missing or masked files may still run. Some of its jobs fail at once without a refusal, and others do nothing.
  if (state.load !== 'loaded') return `its unit file is ${state.load}`;
  if (livenessOf(state) !== 'alive' && !(down === 'started' && livenessOf(state) === 'dead'))
    return `it is ${state.active}`;
  if (action === 'reload' && !state.canReload) return 'it has no reload; use `action: restart`';
  return undefined;
}

function livenessOf(state: UnitState | undefined): Liveness {
  if (state === undefined) return 'unknown';
  if (state.active === 'active' || state.active === 'reloading') return 'alive';
  return state.active === 'failed' || state.active === 'inactive' ? 'dead' : 'unknown';
}
