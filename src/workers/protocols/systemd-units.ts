// Parses the output of systemctl about units. Pure: the driver runs the commands. A reload proves no more than the command behind it;
// reloadProofText names this command for operators.

import type { SupervisorFailure } from '../contract/driver.js';

export interface UnitState {
  /** State of the unit file, as `loaded`, `masked`, `not-found`, `bad-setting`; independent of running processes. */
  readonly load: string;
  /** State of the unit, as `active`, `failed`, `inactive`. */
  readonly active: string;
  readonly canReload: boolean;
  /** Type of the service, as `notify-reload`. */
  readonly type: string;
  /** Id of the current run; changes at each start. */
  readonly invocation: string;
  /** Undefined if the unit has no running main process. */
  readonly mainPid?: number;
  /** Why the unit failed, as `start-limit-hit`. */
  readonly result: string;
  /** Whether a job of the unit, as a start, waits or runs. */
  readonly hasJob: boolean;
  /** Automatic restarts since the last requested start. */
  readonly restarts: number;
  /** In the form of systemd; empty if systemd shows none. */
  readonly startLimit: { readonly burst: string; readonly interval: string };
  /** Programs and arguments of ExecReload, in the form of systemd. */
  readonly reloadCommands: readonly string[];
}

export const shownProperties =
  'LoadState,ActiveState,CanReload,Type,InvocationID,MainPID,ExecReload,Result,Job,NRestarts,StartLimitBurst,StartLimitIntervalUSec';

/** Names that systemd allows for units, including escaped ones. */
export const unitNamePattern = '^[A-Za-z0-9:_.@\\\\-]{1,200}$';
const unitName = new RegExp(unitNamePattern);
const activeStates: ReadonlySet<string> = new Set(
  'active reloading refreshing inactive failed activating deactivating maintenance'.split(' '),
);

/**
 * @param text output of `systemctl list-units --plain --no-legend`: unit, load state, active state, and more
 * @returns sorted names of the units; undefined if a line is not a unit
 */
export function parseUnitList(text: string): readonly string[] | undefined {
  const names = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.trim().split(/\s+/))
    .map(([name = '', , active = '']) => ({ name, active }));
  if (names.some(({ name, active }) => !isUnit(name) || !activeStates.has(active))) return undefined;
  return names
    .filter(({ active }) => active !== 'inactive')
    .map(({ name }) => name)
    .sort();
}

function isUnit(name: string): boolean {
  return unitName.test(name) && /[^.]\.[a-z]+$/.test(name);
}

/** @param text output of `systemctl show --property=...`. @returns undefined if a property is missing */
export function parseUnitState(text: string): UnitState | undefined {
  const lines = text.split('\n').filter((line) => line.includes('='));
  const valuesOf = (key: string): string[] =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
  const [[load = ''], [active = '']] = [valuesOf('LoadState'), valuesOf('ActiveState')];
  if (load === '' || active === '') return undefined;
  const mainPid = /^[1-9]\d{0,9}$/.exec(valuesOf('MainPID')[0] ?? '')?.[0];
  return {
    load,
    active,
    canReload: valuesOf('CanReload')[0] === 'yes',
    type: valuesOf('Type')[0] ?? '',
    invocation: valuesOf('InvocationID')[0] ?? '',
    ...(mainPid === undefined ? {} : { mainPid: Number(mainPid) }),
    result: valuesOf('Result')[0] ?? '',
    hasJob: !['', '0'].includes(valuesOf('Job')[0] ?? ''),
    restarts: Number(/^\d{1,9}$/.exec(valuesOf('NRestarts')[0] ?? '')?.[0] ?? 0),
    startLimit: {
      burst: valuesOf('StartLimitBurst')[0] ?? '',
      interval: valuesOf('StartLimitIntervalUSec')[0] ?? '',
    },
    reloadCommands: valuesOf('ExecReload')
      .map(argvOf)
      .filter((argv) => argv !== ''),
  };
}

/** Extracts the arguments from `{ path=/bin/kill ; argv[]=/bin/kill -HUP $MAINPID ; ignore_errors=no ; ... }`. */
function argvOf(shown: string): string {
  return /(?:^|; |\{ )argv\[\]=(.*?) ; /.exec(shown)?.[1] ?? '';
}

/** @returns a text with what a successful reload of this unit proves */
export function reloadProofText(state: UnitState): string {
  if (state.type === 'notify-reload') return 'it reported that it is ready again';
  const last = state.reloadCommands.at(-1);
  if (last === undefined) return 'systemd names no command of its reload';
  const signals = /^(?:\S*\/)?kill\s/.test(last);
  return signals
    ? `its reload only sends a signal: ${last}`
    : `its reload is as good as the exit code of: ${last}`;
}

/** @returns the record of a failed unit; undefined for another unit, or if a job is about to start it */
export function unitFailure(unit: string, state: UnitState): SupervisorFailure | undefined {
  if (state.active !== 'failed' || state.hasJob) return undefined;
  const text = `${unit} is failed (Result=${state.result || 'unknown'})${limitText(state)}`;
  return { hasGivenUp: 'yes', text, command: `systemctl reset-failed ${unit} && systemctl start ${unit}` };
}

/** In a crash loop `Result` describes the last process. Only the number of restarts shows that systemd stopped to restart it. */
function limitText({ result, restarts, startLimit: { burst, interval } }: UnitState): string {
  const limit = `StartLimitBurst=${burst} in StartLimitIntervalSec=${interval}`;
  if (result === 'start-limit-hit') return `; its start limit was reached: ${limit}`;
  return restarts === 0 ? '' : ` after ${restarts} automatic restarts; its start limit: ${limit}`;
}
