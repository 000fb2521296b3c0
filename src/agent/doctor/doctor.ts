// `writ doctor`: the checks in their order, each by itself, so that what one meets does not hide what the others find; a
// configuration with a mistake leaves those that need none. Writes nothing, takes no lock, tells no worker.
import type { AgentConfig } from '../../core/config/config.js';
import { defaultPlaces } from '../../core/config/config-values.js';
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import { couldNotLook, type DoctorCheck, type DoctorFinding, type Judged } from '../../core/status/doctor.js';
import type { StatusReport } from '../../core/status/status.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Clock } from '../../platform/time/clock.js';
import { type AgentPlaces, agentPlaces } from '../config/agent-places.js';
import { loadConfig } from '../config/load-config.js';
import { lockHolderText, sandboxFacts, stateFacts } from './host-facts.js';
import { judgeAgent, judgeConfiguration, judgeSandbox, judgeState } from './host-rules.js';
import { lookAtMirrors, type MirrorLook, nameFacts } from './server-facts.js';
import { judgeClock, judgeMirrors, judgeNames, judgeTrust } from './server-rules.js';
import { lookAtWorkers, policyParts } from './worker-facts.js';
import { judgeConfinement, judgeGroup, judgePermissions } from './worker-rules.js';

export interface DoctorOptions {
  readonly configPath: string;
  readonly version: string;
  readonly clock: Clock;
  /** What `writ status` says, or why it cannot. */
  readonly status: StatusReport | WritError;
  /** Where resolv.conf, hosts and profiles are; `/etc` by default. */
  readonly etc?: string;
}

interface Patient extends DoctorOptions {
  readonly places: AgentPlaces;
  readonly config?: AgentConfig;
  readonly report?: StatusReport;
  readonly etc: string;
}

/** @returns a finding for each thing that was looked at, in the order of the checks; never rejects */
export async function runDoctor(options: DoctorOptions): Promise<DoctorFinding[]> {
  const { finding, config } = examineConfiguration(options.configPath);
  const { status, etc = '/etc' } = options;
  const patient: Patient = {
    ...options,
    etc,
    places: placesOf(options.configPath),
    ...(config === undefined ? {} : { config }),
    ...(isWritError(status) ? {} : { report: status }),
  };
  const host = [
    await check('state', async () => [judgeState(await stateFacts(patient.places, config))]),
    await check('agent', async () => [await examineAgent(patient)]),
    await check('sandbox', async () => [judgeSandbox(await sandboxFacts(config))]),
  ];
  return [finding, ...host.flat(), ...(await examineBeyond(patient)), ...(await examineWorkers(patient))];
}

async function check(name: DoctorCheck, examine: () => Promise<readonly Judged[]>): Promise<DoctorFinding[]> {
  try {
    return (await examine()).map((one) => ({ check: name, ...one }));
  } catch (error) {
    const { message } = toWritError(error);
    return [{ check: name, ...couldNotLook(message, 'sudo writ doctor') }];
  }
}

function examineConfiguration(path: string): { finding: DoctorFinding; config?: AgentConfig } {
  try {
    const { config, warnings } = loadConfig(path);
    return { finding: { check: 'configuration', ...judgeConfiguration({ path, warnings }) }, config };
  } catch (error) {
    const { code, message, hint } = toWritError(error);
    const judged = judgeConfiguration({ path, warnings: [], error: { code, message, hint } });
    return { finding: { check: 'configuration', ...judged } };
  }
}

/** Those of the file as far as it can be read, else the defaults. */
function placesOf(configPath: string): AgentPlaces {
  try {
    return agentPlaces(configPath);
  } catch (error) {
    if (!isWritError(error)) throw error;
    const { state, run } = defaultPlaces;
    return { state, run, policy: `${state}/policy`, socket: `${run}/agent.sock` };
  }
}

async function examineAgent({ status, report, places, version }: Patient): Promise<Judged> {
  const { socket } = places;
  if (isWritError(status) && status.code === 'AGENT_UNREACHABLE') {
    const { code, message, hint } = status;
    return judgeAgent({ socket, error: { code, message, hint }, versions: { own: version } });
  }
  const runs = report !== undefined && report.agent !== 'stop';
  const lockHolder = runs ? undefined : await lockHolderText(places);
  return judgeAgent({
    socket,
    versions: { own: version, ...(runs ? { agent: report.version } : {}) },
    ...(report === undefined ? {} : { state: report.agent }),
    ...(lockHolder === undefined ? {} : { lockHolder }),
  });
}

const withoutConfig: Judged = { state: 'skip', text: 'waits for a configuration without a mistake' };

async function examineBeyond(patient: Patient): Promise<DoctorFinding[]> {
  const { config, report, clock, version } = patient;
  const looks = config === undefined ? [] : await lookAtMirrors({ config, clock, version });
  const trust = await check('trust', async () => [examineTrust(patient)]);
  const servers = await check('server', async () =>
    config === undefined ? [withoutConfig] : judgeMirrors(looks.map(({ facts }) => facts)),
  );
  const time = await check('clock', async () => [judgeClock(clockFacts(looks, report))]);
  return [...time, ...trust, ...servers];
}

function clockFacts(
  looks: readonly MirrorLook[],
  report: StatusReport | undefined,
): Parameters<typeof judgeClock>[0] {
  const aheadMs = looks.map((look) => look.aheadMs).find((one) => one !== undefined);
  const behindSignedMs = report?.clock?.behindMs;
  return {
    ...(aheadMs === undefined ? {} : { aheadMs }),
    ...(behindSignedMs === undefined ? {} : { behindSignedMs }),
  };
}

const maxRootBytes = 512_000;

function examineTrust({ config, report, status, clock }: Patient): Judged {
  if (config === undefined) return withoutConfig;
  if (report === undefined) {
    const { message = 'no status' } = isWritError(status) ? status : {};
    return couldNotLook(message.split('\n', 1)[0] ?? '', 'sudo writ doctor');
  }
  const read = readSmallFile(config.root, { maxBytes: maxRootBytes });
  return judgeTrust({
    root: config.root,
    roles: report.trust,
    untrusted: report.untrusted?.some(({ active }) => active) === true,
    nowMs: clock.nowMs(),
    ...(read.kind === 'read' ? {} : { rootUnread: read.why }),
  });
}

async function examineWorkers(patient: Patient): Promise<DoctorFinding[]> {
  const { config, report, clock, etc } = patient;
  if (config === undefined) return [{ check: 'workers', ...withoutConfig }];
  try {
    const look = await lookAtWorkers({ config, clock, told: report?.workers ?? [], etc });
    const { groups, readers, confined, resolverGroups } = look;
    const none: Judged = { state: 'skip', text: 'no group is configured' };
    return [
      ...(await check('names', async () => [judgeNames({ ...nameFacts(config, etc), resolverGroups })])),
      ...(await check('workers', async () => (groups.length === 0 ? [none] : groups.map(judgeGroup)))),
      ...(await check('permissions', async () => {
        const parts = policyParts(config);
        const names = groups.map(({ group }) => group);
        const facts = { policy: config.policy, groups: names, readers };
        return [judgePermissions({ ...facts, ...(parts === undefined ? {} : { parts }) })];
      })),
      ...(await check('apparmor', async () => [judgeConfinement(confined, config.policy)])),
    ];
  } catch (error) {
    return [{ check: 'workers', ...couldNotLook(toWritError(error).message, 'sudo writ doctor') }];
  }
}
