// Reads the main process of a systemd unit, and how the unit failed, from systemctl. Starts and stops nothing.

import { findProcess } from '../../platform/process/processes.js';
import { runCommand } from '../../platform/process/run-command.js';
import type { Daemon, SupervisorFailure } from '../contract/driver.js';
import {
  parseUnitState,
  shownProperties,
  type UnitState,
  unitFailure,
  unitNamePattern,
} from '../protocols/systemd-units.js';

const askTimeoutMs = 5000;
const maxAnswerBytes = 65_536;

/**
 * @param programPath search path for systemctl; undefined: the fixed paths
 * @returns the main process. systemd reaps its processes itself, so that a pid that it reports both before and after the start time is
 *   read cannot belong to another program
 */
export async function findUnitProcess(unit: string, programPath?: string): Promise<Daemon> {
  if (!new RegExp(unitNamePattern).test(unit))
    return { kind: 'unknown', reason: `${unit} is not a unit name` };
  const first = await mainPidOf(unit, programPath);
  if (first.kind !== 'pid') return first;
  const process = findProcess(first.pid);
  const second = await mainPidOf(unit, programPath);
  if (second.kind !== 'pid') return second;
  if (process === undefined || second.pid !== first.pid)
    return { kind: 'unknown', reason: `${unit}: its main process changes` };
  return { kind: 'found', process };
}

type MainPid = { readonly kind: 'pid'; readonly pid: number } | Exclude<Daemon, { kind: 'found' }>;

/** @returns undefined if the unit has not failed, or systemctl cannot show it */
export async function findUnitFailure(
  unit: string,
  programPath?: string,
): Promise<SupervisorFailure | undefined> {
  const state = await showUnit(unit, programPath);
  return state && unitFailure(unit, state);
}

async function mainPidOf(unit: string, programPath: string | undefined): Promise<MainPid> {
  const state = await showUnit(unit, programPath);
  if (state === undefined) return { kind: 'unknown', reason: `${unit}: systemctl cannot show it` };
  if (state.mainPid !== undefined) return { kind: 'pid', pid: state.mainPid };
  if (state.active === 'inactive' || state.active === 'failed')
    return { kind: 'dead', reason: `${unit} is ${state.active}` };
  return { kind: 'unknown', reason: `${unit} is ${state.active}, and systemd knows no main process of it` };
}

async function showUnit(unit: string, programPath: string | undefined): Promise<UnitState | undefined> {
  const result = await runCommand({
    argv: [
      'systemctl',
      '--no-pager',
      '--no-ask-password',
      'show',
      `--property=${shownProperties}`,
      '--',
      unit,
    ],
    env: programPath === undefined ? {} : { PATH: programPath },
    cwd: '/',
    timeoutMs: askTimeoutMs,
    maxOutputBytes: maxAnswerBytes,
  });
  return result.kind === 'exited' && result.exitCode === 0 ? parseUnitState(result.stdout) : undefined;
}
