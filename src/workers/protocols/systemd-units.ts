// What systemctl prints about units, read without guessing. Pure: what is asked and when is the driver's.
// A reload of a unit proves as much as the command behind it, no more; the text for people says which one that is.

import type { SupervisorFailure } from '../contract/driver.js';

export interface UnitState {
  /** As `loaded`, `masked`, `not-found`, `bad-setting`: of its files, whatever still runs. */
  readonly load: string;
  /** As `active`, `failed`, `inactive`. */
  readonly active: string;
  readonly canReload: 'yes' | 'no';
  /** As `notify-reload`. */
  readonly type: string;
  /** Of the present run of the unit; another after each start. */
  readonly invocation: string;
  /** Left out when no process of it runs, or systemd knows none as its main one. */
  readonly mainPid?: number;
  /** Why it failed, as `start-limit-hit`. */
  readonly result: string;
  /** `yes`: a job for it, as a start, waits or runs. */
  readonly hasJob: 'yes' | 'no';
  /** How often systemd restarted it by itself since a person or a job started it. */
  readonly restarts: number;
  /** As systemd shows them; empty where it shows none. */
  readonly startLimit: { readonly burst: string; readonly interval: string };
  /** Programs and arguments of ExecReload, as systemd shows them. */
  readonly reloadCommands: readonly string[];
}

export const shownProperties =
  'LoadState,ActiveState,CanReload,Type,InvocationID,MainPID,ExecReload,Result,Job,NRestarts,StartLimitBurst,StartLimitIntervalUSec';

/** Names that systemd itself allows for units, with the characters of its escapes. */
export const unitNamePattern = '^[A-Za-z0-9:_.@\\\\-]{1,200}$';
const unitName = new RegExp(unitNamePattern);
const activeStates: ReadonlySet<string> = new Set(
  'active reloading refreshing inactive failed activating deactivating maintenance'.split(' '),
);

/**
 * @param text of `systemctl list-units --plain --no-legend`: unit, load state, active state, and more
 * @returns names of the units, sorted; undefined when a line is none
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

/** @param text of `systemctl show --property=...`. @returns undefined when a property is missing */
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
    canReload: valuesOf('CanReload')[0] === 'yes' ? 'yes' : 'no',
    type: valuesOf('Type')[0] ?? '',
    invocation: valuesOf('InvocationID')[0] ?? '',
    ...(mainPid === undefined ? {} : { mainPid: Number(mainPid) }),
    result: valuesOf('Result')[0] ?? '',
    hasJob: ['', '0'].includes(valuesOf('Job')[0] ?? '') ? 'no' : 'yes',
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

/** systemd shows `{ path=/bin/kill ; argv[]=/bin/kill -HUP $MAINPID ; ignore_errors=no ; ... }`. */
function argvOf(shown: string): string {
  return /(?:^|; |\{ )argv\[\]=(.*?) ; /.exec(shown)?.[1] ?? '';
}

/** @returns in words what a reload of this unit that ended well has shown */
export function whatReloadProves(state: UnitState): string {
  if (state.type === 'notify-reload') return 'it said that it is ready again';
  const last = state.reloadCommands.at(-1);
  if (last === undefined) return 'its reload is done by nobody that systemd names';
  const signals = /^(?:\S*\/)?kill\s/.test(last);
  return signals
    ? `its reload only sends a signal: ${last}`
    : `its reload is as good as the exit code of: ${last}`;
}

/** @returns the record of a unit that failed; undefined for any other, and for one that a job is about to start */
export function unitFailure(unit: string, state: UnitState): SupervisorFailure | undefined {
  if (state.active !== 'failed' || state.hasJob === 'yes') return undefined;
  const text = `${unit} is failed (Result=${state.result || 'unknown'})${limitText(state)}`;
  return { hasGivenUp: 'yes', text, command: `systemctl reset-failed ${unit} && systemctl start ${unit}` };
}

/** In a crash loop `Result` keeps how the last process ended, and only the restarts show that systemd has stopped them. */
function limitText({ result, restarts, startLimit: { burst, interval } }: UnitState): string {
  const limit = `StartLimitBurst=${burst} in StartLimitIntervalSec=${interval}`;
  if (result === 'start-limit-hit') return `; its start limit was reached: ${limit}`;
  return restarts === 0 ? '' : ` after ${restarts} automatic restarts; its start limit: ${limit}`;
}
