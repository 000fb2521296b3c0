// `writ doctor`: the checks of each subject in their order, each by itself, so that what one meets does not hide what the
// others find; a configuration with a mistake leaves those that need none. Writes nothing, takes no lock, notifies no worker.
import { defaultPlaces } from '../../core/config/config-values.js';
import { orUndefined, toWritError } from '../../core/errors.js';
import type { DoctorFinding } from '../../core/status/doctor.js';
import { agentPlaces } from '../config/config-file.js';
import { fleetChecks } from './check-fleet.js';
import { examineConfiguration, hostChecks } from './check-host.js';
import { policyChecks } from './check-policy.js';
import { preloadChecks } from './check-preload.js';
import { proxyChecks } from './check-proxy.js';
import { releaseChecks } from './check-release.js';
import { sandboxChecks } from './check-sandbox.js';
import { serverChecks } from './check-server.js';
import { workerChecks } from './check-workers.js';
import type { Checks, DoctorContext } from './doctor-context.js';
import { couldNotLook, judgeChange } from './judged.js';

export interface DoctorOptions
  extends Pick<DoctorContext, 'version' | 'clock' | 'releasedAtMs' | 'hostStatus' | 'service'> {
  readonly configPath: string;
  /** `/etc` by default. */
  readonly etc?: string;
}

const subjects: readonly ((context: DoctorContext) => Checks | Promise<Checks>)[] = [
  hostChecks,
  sandboxChecks,
  preloadChecks,
  policyChecks,
  proxyChecks,
  serverChecks,
  releaseChecks,
  workerChecks,
  fleetChecks,
];

/** @returns a finding for each thing that was looked at, in the order of the checks; never rejects */
export async function runDoctor({
  configPath,
  etc = '/etc',
  ...given
}: DoctorOptions): Promise<DoctorFinding[]> {
  const { judged, config } = examineConfiguration(configPath);
  const { state, run } = defaultPlaces;
  // Those of the file as far as it can be read, else the defaults.
  const places = orUndefined(() => agentPlaces(configPath)) ?? {
    ...{ state, run, policy: `${state}/policy`, socket: `${run}/agent.sock` },
  };
  const changed = given.hostStatus.report?.problems.find(({ code }) => code === 'CONFIG_CHANGED');
  const findings: DoctorFinding[] = [
    { check: 'configuration', ...judged },
    ...(changed === undefined ? [] : [{ check: 'configuration' as const, ...judgeChange(changed) }]),
  ];
  for (const checksOf of subjects)
    findings.push(...(await examine(await checksOf({ ...given, places, config, etc }))));
  return findings;
}

async function examine(checks: Checks): Promise<DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  for (const [check, look] of checks) {
    try {
      for (const one of [await look()].flat()) findings.push({ check, ...one });
    } catch (error) {
      findings.push({ check, ...couldNotLook(toWritError(error).message) });
    }
  }
  return findings;
}
