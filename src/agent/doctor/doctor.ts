// `writ doctor`: runs the checks of all subjects in order. An error in one check does not stop the others, and an invalid configuration
// does not stop the checks that need none. Takes no lock and notifies no worker.
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
import { couldNotCheck, judgeChange } from './judged.js';

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

/** @returns the findings of all checks, in the order of the checks; never rejects */
export async function runDoctor({
  configPath,
  etc = '/etc',
  ...given
}: DoctorOptions): Promise<DoctorFinding[]> {
  const { judged, config } = examineConfiguration(configPath);
  const { state, run } = defaultPlaces;
  // The paths of the configuration file if it can be read, else the defaults.
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
  for (const [check, runCheck] of checks) {
    try {
      for (const one of [await runCheck()].flat()) findings.push({ check, ...one });
    } catch (error) {
      findings.push({ check, ...couldNotCheck(toWritError(error).message) });
    }
  }
  return findings;
}
